"""The traverse loop: sense, plan and drive in cycles, until the run ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mlnav.config import Config, numbers_of
from mlnav.nav import Cycle, Motion, Navigator, Pose
from mlnav.parts import find
from mlnav.sim.localization import make_localization
from mlnav.sim.navigator import SimulatedNavigator
from mlnav.sim.records import PARTS, CycleRecord, TraverseResult
from mlnav.sim.state import RoverState
from mlnav.sim.validated import ValidatedWorld
from mlnav.sim.world import KinematicWorld, World
from mlnav.terrain import Terrain

Point = tuple[float, float]
Observer = Callable[[CycleRecord, Navigator, Cycle], None]
"""Called after each cycle. Until the next one, navigator and cycle hold what the decision was made
from: local map, risk, candidates and their verdicts."""

MAX_HEADING_RAD = 1e6
"""The core's limit: a larger heading has too few digits."""


class SimError(ValueError):
    """A run cannot begin: its start, goal or heading is unusable."""


def traverse(
    terrain: Terrain,
    config: Config,
    start: Point | None = None,
    goal: Point | None = None,
    seed: int = 0,
    *,
    heading_rad: float | None = None,
    observers: Iterable[Observer] = (),
    navigator: SimulatedNavigator | None = None,
    world: World | None = None,
) -> TraverseResult:
    """Drive a rover from start to goal. Ctrl-C ends the run as `interrupted` instead of raising.

    Args:
        terrain: the true ground.
        config: of the run.
        start: (x, y) [m]; the terrain's own by default.
        goal: likewise.
        seed: of the noise of sensor and localization.
        heading_rad: at the start; towards the goal by default.
        observers: called at the end of each cycle.
        navigator: a new one; the configuration's by default.
        world: likewise.

    Raises:
        SimError: start, goal or heading is missing, off the map, over unknown ground or not finite.
        ConfigError: the core refuses the configuration.
        ModelError: the network's model is there and cannot be used.
        TerrainError: cells are coarser than 0.2 m, and the configuration does not allow that.
        WorldError: the world cannot hold the terrain or the rover.
        PartError: a part cannot be made, or one from outside breaks its contract.
    """
    goal_point = checked_point("goal", goal or terrain.goal_m, terrain)
    pose = start_pose(terrain, start, goal_point, heading_rad)
    navigator = navigator or SimulatedNavigator(terrain, config, seed)
    run = _Run(terrain, config, seed, pose, goal_point, tuple(observers))
    ground = world or make_world(terrain, config)
    run.built = {
        **navigator.as_built(),
        **ground.as_built(),
        **run.localization.as_built(),
        **numbers_of("traverse", config.traverse),
    }
    try:
        outcome = run.drive(navigator, ground)
    except KeyboardInterrupt:
        outcome = "interrupted"
    return run.result(outcome)


def one_cycle(
    terrain: Terrain,
    config: Config,
    start: Point | None = None,
    goal: Point | None = None,
    *,
    heading_rad: float | None = None,
) -> tuple[Navigator, Cycle, Pose, Point]:
    """A planning cycle, for inspection: navigator, cycle, pose and goal. Raises as `traverse`."""
    goal_point = checked_point("goal", goal or terrain.goal_m, terrain)
    pose = start_pose(terrain, start, goal_point, heading_rad)
    simulated = SimulatedNavigator(terrain, config)
    cycle = simulated.cycle(at_rest(terrain, config, pose), goal_point)
    return simulated.navigator, cycle, pose, goal_point


def at_rest(terrain: Terrain, config: Config, pose: Pose) -> RoverState:
    """A rover that settled at a pose and is estimated to be there."""
    return RoverState.at(KinematicWorld(terrain, config.rover_model()).place(pose))


def make_world(terrain: Terrain, config: Config) -> World:
    """The world that a configuration names.

    Raises:
        WorldError: it cannot hold the terrain or the rover.
        PartError: its library is missing.
    """
    part = find("world", config.world.name)
    made: World = part.make(config.world, config, terrain)
    settings = numbers_of("world", config.world)
    return ValidatedWorld(made, part, settings) if part.outside else made


def checked_point(label: str, point: Point | None, terrain: Terrain) -> Point:
    """The point. Raises SimError: missing, not finite, off the map, or over unknown ground."""
    if point is None:
        raise SimError(f"no {label}: the terrain {terrain.name!r} names none, so one must be given")
    x, y = float(point[0]), float(point[1])
    if not (math.isfinite(x) and math.isfinite(y)):
        raise SimError(f"{label} must be finite, got ({x:g}, {y:g})")
    if not terrain.contains(x, y):
        extent = "x {:g} to {:g}, y {:g} to {:g} m".format(*terrain.extent_m)
        raise SimError(f"{label} ({x:g}, {y:g}) is outside the map: {extent}")
    if not math.isfinite(terrain.height(x, y)):
        raise SimError(f"{label} ({x:g}, {y:g}) is on unknown ground")
    return x, y


def start_pose(
    terrain: Terrain, start: Point | None, goal: Point, heading_rad: float | None
) -> Pose:
    """The pose that a run begins at. Raises SimError: as `checked_point`, or by its heading."""
    x, y = checked_point("start", start or terrain.start_m, terrain)
    if heading_rad is None:
        heading_rad = math.atan2(goal[1] - y, goal[0] - x)
    if not (math.isfinite(heading_rad) and abs(heading_rad) <= MAX_HEADING_RAD):
        raise SimError(
            f"heading must be finite and at most {MAX_HEADING_RAD:g} rad, got {heading_rad:g}"
        )
    return x, y, heading_rad


@dataclass(eq=False)
class _Run:
    """State of one traverse, kept outside the loop so that an interrupt loses nothing."""

    terrain: Terrain
    config: Config
    seed: int
    start: Pose
    goal: Point
    observers: tuple[Observer, ...] = ()
    built: dict[str, float] = field(default_factory=dict)
    cycles: list[CycleRecord] = field(default_factory=list)
    driven_m: float = 0.0
    steered_per_m: float = 0.0
    faults: tuple[str, ...] = ()
    begin: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.state = RoverState(self.start, {}, self.start)
        self.localization = make_localization(self.config, self.seed)

    def drive(self, navigator: SimulatedNavigator, world: World) -> str:
        """Cycle until the run ends; gives its outcome."""
        limits = self.config.traverse
        placed = world.place(self.start)
        if placed.first_unsafe() is not None:
            self.faults = tuple(placed.faults(0))
            return "start_unsafe"
        self.state = RoverState.at(placed, 0)
        straight_m = self._distance_to_goal()
        waiting = 0
        while self._distance_to_goal() > limits.goal_tolerance_m:
            if len(self.cycles) >= limits.max_cycles:
                return "timeout"
            if self.driven_m > limits.max_driven_factor * straight_m:
                return "distance_limit"
            record = self._cycle(navigator, world)
            if record.outcome == "goal_reached":
                break
            if record.outcome in ("no_safe_path", "start_unsafe"):
                return record.outcome
            if record.ending is not None:
                return record.ending
            waiting = waiting + 1 if record.outcome == "budget_exhausted" else 0
            if waiting >= limits.stuck_cycles:
                return "stuck"
        missed_by_m = math.dist(self.goal, self.state.true_pose[:2])
        return "goal_reached" if missed_by_m <= limits.goal_miss_m else "goal_missed"

    def result(self, outcome: str) -> TraverseResult:
        config = self.config
        return TraverseResult(
            outcome=outcome,
            terrain=self.terrain.name,
            terrain_sha256=self.terrain.sha256,
            **{part: getattr(config, part).name for part in PARTS},
            seed=self.seed,
            start=self.start,
            goal=self.goal,
            end=self.state.true_pose,
            estimated_end=self.state.estimated_pose,
            driven_m=self.driven_m,
            cycles=tuple(self.cycles),
            faults=self.faults,
            built=self.built,
            wall_s=time.perf_counter() - self.begin,
        )

    def _distance_to_goal(self) -> float:
        """Estimated."""
        return math.dist(self.goal, self.state.estimated_pose[:2])

    def _cycle(self, navigator: SimulatedNavigator, world: World) -> CycleRecord:
        state = self.state
        cycle = navigator.cycle(state, self.goal, self.steered_per_m)
        plan = cycle.result
        execution = None
        timing = dict(cycle.timing_s)
        if plan.outcome == "path":
            begin = time.perf_counter()
            end = plan.commit_end if state.exact else None
            motion = Motion(plan.turn_rad, plan.curvature_per_m, plan.length_m, end)
            execution = world.execute(state.true_pose, motion)
            self.steered_per_m = motion.steered_after_per_m
            timing["drive"] = time.perf_counter() - begin
        record = CycleRecord.of(len(self.cycles), state, cycle, execution, self.driven_m, timing)
        # From here on the cycle has happened, whatever interrupts what follows.
        if execution is not None:
            self.state = self.localization.update(state, execution)
        self.driven_m = record.driven_m
        self.faults = record.faults or record.start_faults
        self.cycles.append(record)
        for observer in self.observers:
            observer(record, navigator.navigator, cycle)
        return record
