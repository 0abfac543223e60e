"""The configuration of a run: one validated tree, written by people as YAML.

Keys carry their units; angles are degrees here and radians in the core. Unknown keys are refused
with the nearest known name. Defaults repeat the C++ defaults (a test holds them equal).

Parts that are chosen by name (`KINDS`) are one small model each, in the union of their kind: a new
one is a model and one line in its union.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from mlnav.io import flag_for_number, read_yaml

if TYPE_CHECKING:
    from mlnav import _core

T = TypeVar("T")

__all__ = ["Config", "ConfigError", "json_schema", "load_config", "parse_config"]


class ConfigError(ValueError):
    """A configuration is faulty; the message has the path of each bad key and what is wrong."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or a list of what is known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def from_preset(what: str, data: Any, key: str, presets: Mapping[str, Mapping[str, Any]]) -> Any:
    """The values of a named set, `x` or `{key: x, ...}` with changes; other data as it is."""
    if isinstance(data, str):
        data = {key: data}
    if not (isinstance(data, Mapping) and key in data):
        return data
    name = data[key]
    if name not in presets:
        hint = suggestion(str(name), presets)
        raise PydanticCustomError(
            "unknown_name",
            "no {what} '{name}'{hint}",
            {"what": what, "name": str(name), "hint": hint},
        )
    return {**presets[name], **{k: v for k, v in data.items() if k != key}}


class Section(BaseModel):
    """A part of the configuration: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _prepared(cls, data: Any) -> Any:
        data = cls.expanded(data)
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    hint = suggestion(str(key), cls.model_fields)
                    raise PydanticCustomError(
                        "unknown_key", "unknown key '{key}'{hint}", {"key": str(key), "hint": hint}
                    )
            flag = flag_for_number({k: f.annotation for k, f in cls.model_fields.items()}, data)
            if flag is not None:
                raise PydanticCustomError(
                    "number", "{key} is a number, not true or false", {"key": flag}
                )
        return data

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Data with short forms written out; sections that have some override this."""
        return data


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Angle = Annotated[float, Field(gt=0, lt=90)]


def numbers_of(prefix: str, section: Section) -> dict[str, float]:
    """Numbers in a section and the sections in it, by path; lists and what is null are left out."""
    found: dict[str, float] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= numbers_of(f"{prefix}.{name}", value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}.{name}"] = value
    return found


def numbers_of_struct(prefix: str, struct: Any) -> dict[str, float]:
    """Numbers of a core's struct and the structs in it, by path, angles in degrees."""
    found: dict[str, float] = {}
    for name in dir(struct):
        value = getattr(struct, name)
        if name.startswith("_") or callable(value):
            continue
        path = f"{prefix}.{name}"
        if isinstance(value, int | float):
            if isinstance(value, bool) or math.isinf(value):
                continue
            angle = name.endswith("_rad") and not name.endswith("_per_rad")
            found[path.removesuffix("_rad") + "_deg" if angle else path] = (
                math.degrees(value) if angle else value
            )
        elif type(value).__module__ == type(struct).__module__:
            found |= numbers_of_struct(path, value)
    return found


# --------------------------------------------------------------------------------------- the rover


class Rover(Section):
    """Geometry of a six-wheel rocker-bogie rover; Perseverance-class by default.

    Frame: x forward, y left, z up, origin midway between the middle wheels' contact points.
    """

    wheel_radius_m: Positive = 0.263
    wheel_width_m: Positive = 0.335
    front_x_m: float = 1.185
    rear_x_m: float = -1.075
    front_y_m: Positive = 1.0625
    middle_y_m: Positive = 1.1845
    rear_y_m: Positive = 1.0625
    rocker_pivot_x_m: float = 0.304
    rocker_pivot_z_m: float = 0.893
    bogie_pivot_x_m: float = -0.450
    bogie_pivot_z_m: float = 0.663
    pan_rear_x_m: float = -1.18
    pan_front_x_m: float = 0.90
    pan_half_width_m: Positive = 0.775
    pan_height_m: float = 0.60

    def to_core(self) -> _core.RoverGeometry:
        """The core's struct."""
        from mlnav import _core

        return _filled(_core.RoverGeometry(), **self.model_dump())


class Limits(Section):
    """What makes a pose unsafe: beyond any of these.

    Written as the name of a set, `enav_like` or `flight_like`; as a set with changes,
    `{base: enav_like, tilt_max_deg: 25}`; or as all the numbers.
    """

    clearance_min_m: float
    """Least height of the belly pan above ground."""
    tilt_max_deg: Angle
    """Body z axis against the vertical."""
    bogie_max_deg: Angle
    """Bogie angle relative to its rocker, either way."""
    differential_max_deg: Angle
    """Rocker angle relative to the body, either way."""
    wheel_drop_max_m: Positive
    """Height span of the ground in a wheel's box: what `fixed_box` looks at."""
    relief_max_m: Positive | None = None
    """Height span of the ground under a settled wheel's footprint; null for no limit."""

    presets: ClassVar[dict[str, dict[str, float | None]]] = {
        # Reproduces the difficulty published for ENav with the fixed-box checker.
        "enav_like": {
            "clearance_min_m": 0.06,
            "tilt_max_deg": 30.0,
            "bogie_max_deg": 25.0,
            "differential_max_deg": 12.0,
            "wheel_drop_max_m": 0.22,
            "relief_max_m": None,
        },
        # After the limits Curiosity is operated with.
        "flight_like": {
            "clearance_min_m": 0.20,
            "tilt_max_deg": 25.0,
            "bogie_max_deg": 17.0,
            "differential_max_deg": 7.0,
            "wheel_drop_max_m": 0.30,
            "relief_max_m": 0.30,
        },
    }

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Numbers from the name of a set, or from a base and changes."""
        return from_preset("limits", data, "base", cls.presets)

    @property
    def name(self) -> str:
        """Name of the set these are, or 'custom'."""
        mine = {k: getattr(self, k) for k in type(self).model_fields}
        return next((name for name, preset in self.presets.items() if preset == mine), "custom")

    @model_serializer
    def _as_written(self) -> str | dict[str, float | None]:
        if self.name != "custom":
            return self.name
        return {k: getattr(self, k) for k in type(self).model_fields}

    def to_core(self) -> _core.SafetyLimits:
        """The core's struct."""
        from mlnav import _core

        return _filled(
            _core.SafetyLimits(),
            clearance_min_m=self.clearance_min_m,
            tilt_max_rad=math.radians(self.tilt_max_deg),
            bogie_max_rad=math.radians(self.bogie_max_deg),
            differential_max_rad=math.radians(self.differential_max_deg),
            wheel_drop_max_m=self.wheel_drop_max_m,
            relief_max_m=math.inf if self.relief_max_m is None else self.relief_max_m,
        )


# ------------------------------------------------------------------------- what is chosen by name


WIDE_STEP_M = 0.25
"""Between checked poses on a path for checkers whose wheel boxes (0.4 m) reach over the gap."""

CLOSE_STEP_M = 0.1
"""For checkers that judge a pose and nothing beside it: a wheel comes on to a rock and off it
within 0.25 m."""

WIDE_TURN_DEG = 10.0
CLOSE_TURN_DEG = 10.0 / 3.0
"""Between checked poses of a turn in place: corner wheels move 0.28 m and 0.09 m. All unsafe states
that traverses under `verified` ran into with 10 degrees were in turns."""


class Verified(Section):
    """The certified checker: passes a pose only with proof of a settled state in its bounds."""

    name: Literal["verified"] = "verified"
    enclosed_m: Annotated[float, Field(ge=1e-8, le=0.1)] = 1e-3
    """Wheel height by which the first box lets settled states differ."""
    max_tries: Annotated[int, Field(ge=1, le=100)] = 8
    """Boxes tried before `not_certified`."""

    pose_step_m: ClassVar[float] = CLOSE_STEP_M
    turn_step_deg: ClassVar[float] = CLOSE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        config = _filled(
            _core.VerifiedConfig(), enclosed_m=self.enclosed_m, max_tries=self.max_tries
        )
        return _core.Checker.verified(model, config)


class FixedBox(Section):
    """The ENav-like checker: wheel boxes of fixed size about nominal positions."""

    name: Literal["fixed_box"] = "fixed_box"
    half_length_m: Positive = 0.20
    """Of a wheel's box, along the rover."""
    half_width_m: Positive = 0.20
    """Across."""

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        box = _filled(
            _core.FixedBoxConfig(), half_length_m=self.half_length_m, half_width_m=self.half_width_m
        )
        return _core.Checker.fixed_box(model, box, max_map_cells)


class Probabilistic(Section):
    """p-ACE: the intervals of `fixed_box`, passed where they are likely enough. Proves nothing."""

    name: Literal["probabilistic"] = "probabilistic"
    half_length_m: Positive = 0.20
    """Of a wheel's box, along the rover."""
    half_width_m: Positive = 0.20
    """Across."""
    sigma_fraction: Positive = 0.17
    """Standard deviation of a state, of its interval's width; published: 0.13 to 0.20."""
    risk_max: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Chance of breaking any limit that a pose may have."""

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        box = _filled(
            _core.FixedBoxConfig(), half_length_m=self.half_length_m, half_width_m=self.half_width_m
        )
        config = _filled(
            _core.ProbabilisticConfig(), sigma_fraction=self.sigma_fraction, risk_max=self.risk_max
        )
        return _core.Checker.probabilistic(model, box, config, max_map_cells)


class Settle(Section):
    """The reference checker: settles the rover and looks at the state. No bounds."""

    name: Literal["settle"] = "settle"

    pose_step_m: ClassVar[float] = CLOSE_STEP_M
    turn_step_deg: ClassVar[float] = CLOSE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.settle(model)


class Costmap(Section):
    """Coarse costs per metre: 1 + (tilt / tilt_scale)^2 + roughness / roughness_scale."""

    coarsening: Annotated[int, Field(ge=1, le=64)] = 4
    """Heightmap cells per costmap cell, each way."""
    patch_half_width_m: Positive = 1.0
    """Half width of the square that a plane is fitted to."""
    tilt_scale_deg: Angle = 20.0
    roughness_scale_m: Positive = 0.08
    tilt_limit_deg: Angle = 30.0
    """Steeper patches are closed."""
    unknown_cost: Positive = 1.4
    """Per metre over unseen cells."""


class PathTree(Section):
    """Candidates: turn in place, then an arc, then another arc."""

    turn_deg: Annotated[list[float], Field(min_length=1, max_length=64)] = [
        0, 10, -10, 20, -20, 40, -40, 70, -70, 100, -100, 130, -130, 160,
    ]  # fmt: skip
    """Closed under taking off the turn that is committed, so that what is left is a candidate."""
    curvature_per_m: Annotated[list[float], Field(min_length=1, max_length=64)] = [
        0.0, *(sign * k / 15.0 for k in range(1, 6) for sign in (1, -1)),
    ]  # fmt: skip
    arc_length_m: Positive = 3.0
    ace_step_m: Positive | None = None
    """Distance between checked poses; divides arc_length_m. null: what the checker needs, 0.25 m
    for those whose wheel boxes reach from one pose to the next, 0.1 m for those that judge a pose
    alone."""
    turn_step_deg: Positive | None = None
    """A pose is checked at least this often while turning in place. null: what the checker needs,
    10 degrees, or a third of that for those that judge a pose alone."""


class Enav(Section):
    """The ENav-like planner."""

    name: Literal["enav"] = "enav"
    costmap: Costmap = Costmap()
    tree: PathTree = PathTree()
    turn_cost: NonNegative = 1.0
    """Of any turn in place, in metres of flat driving."""
    turn_cost_per_rad: NonNegative = 1.6
    commit_length_m: Positive = 1.0
    """Arc that is driven before planning again; a multiple of the step between checked poses."""
    commit_turn_deg: Positive = 30.0
    short_paths: bool = True
    """When no whole path passes, drive the best start of one that did."""
    riskiest_first: bool = True
    """Check a path's poses from the riskiest on where there is a risk map; else from the start."""
    overthink_evaluations: Annotated[int, Field(ge=0)] = 275
    """A cycle with more ACE evaluations than this is an overthink."""
    memory_poses: Annotated[int, Field(ge=0)] = 256
    """Cycle starts that are remembered; 0 switches memory off."""
    memory_failures: Annotated[int, Field(ge=0)] = 1024
    """Failed poses that are remembered, to price those around them; 0: none."""
    visit_cost_per_m: NonNegative = 0.5
    """Per remembered visit."""
    visit_radius_m: Positive = 0.8
    flip_cost: NonNegative = 2.0
    """Of turning against the turn committed just before."""

    def to_core(
        self,
        heuristic: Heuristic | None = None,
        max_map_cells: int = 0,
        max_risk_cells: int = 0,
        pose_step_m: float = CLOSE_STEP_M,
        turn_step_deg: float = CLOSE_TURN_DEG,
    ) -> _core.EnavConfig:
        """The core's struct, with room for maps of the given sizes (the core's default if 0).

        `pose_step_m` and `turn_step_deg` are between checked poses where the tree names none, the
        checker's own.

        Raises:
            ConfigError: the core refuses a value; the message names its field.
        """
        from mlnav import _core

        config = _core.EnavConfig()
        _filled(
            config.costmap,
            coarsening=self.costmap.coarsening,
            patch_half_width_m=self.costmap.patch_half_width_m,
            tilt_scale_rad=math.radians(self.costmap.tilt_scale_deg),
            roughness_scale_m=self.costmap.roughness_scale_m,
            tilt_limit_rad=math.radians(self.costmap.tilt_limit_deg),
            unknown_cost=self.costmap.unknown_cost,
        )
        _filled(
            config.tree,
            turn_rad=[math.radians(t) for t in self.tree.turn_deg],
            curvature_per_m=list(self.tree.curvature_per_m),
            arc_length_m=self.tree.arc_length_m,
            ace_step_m=self.tree.ace_step_m or pose_step_m,
            turn_step_rad=math.radians(self.tree.turn_step_deg or turn_step_deg),
        )
        if heuristic is not None:
            _filled(
                config.risk,
                weight_per_m=heuristic.weight_per_m,
                to_go_fraction=heuristic.to_go_fraction,
                fail_price=heuristic.fail_price,
            )
            _filled(
                config.risk_policy, ask=heuristic.policy, persist_cycles=heuristic.persist_cycles
            )
        _filled(
            config,
            turn_cost=self.turn_cost,
            turn_cost_per_rad=self.turn_cost_per_rad,
            commit_length_m=self.commit_length_m,
            commit_turn_rad=math.radians(self.commit_turn_deg),
            short_paths=self.short_paths,
            riskiest_first=self.riskiest_first,
            overthink_evaluations=self.overthink_evaluations,
            memory_poses=self.memory_poses,
            memory_failures=self.memory_failures,
            visit_cost_per_m=self.visit_cost_per_m,
            visit_radius_m=self.visit_radius_m,
            flip_cost=self.flip_cost,
        )
        if max_map_cells:
            config.max_map_cells = max_map_cells
        if max_risk_cells:
            config.max_risk_cells = max_risk_cells
        try:
            config.validate()
        except _core.CoreError as fault:
            hint, step, arc_m = "", config.tree.ace_step_m, config.tree.arc_length_m
            if "commit_length_m" in str(fault):
                hint = f": a whole number of steps of {step:g} m (tree.ace_step_m), up to one arc"
            elif "out of range [ace_step_m]" in str(fault):
                hint = f": arc_length_m, {arc_m:g} m, must be a whole number of {step:g} m"
            raise ConfigError(f"planner: {fault}{hint}") from fault
        return config


Policy = Literal["always", "on_failure"]
"""When a heuristic is asked: up front in every cycle, or once the cheapest path failed ACE."""


class NoHeuristic(Section):
    """The baseline: no risk map."""

    name: Literal["none"] = "none"
    policy: ClassVar[Policy] = "always"
    persist_cycles: ClassVar[int] = 0
    weight_per_m: NonNegative = 0.0
    to_go_fraction: NonNegative = 0.0
    fail_price: ClassVar[float] = 0.0


class Predictor(Section):
    """What all heuristics with a risk map share: when it is made, and how it is priced."""

    name: str
    policy: Policy = "on_failure"
    """When the map is made: always, or on_failure of the cheapest path."""
    persist_cycles: Annotated[int, Field(ge=0)] = 3
    """With on_failure: after a cycle that needed the map, so many have it from the start. Hard
    ground comes in stretches."""
    weight_per_m: NonNegative = 5.0
    """Path cost per metre = weight x -log(1 - risk), of a risk of at most 0.99."""
    to_go_fraction: NonNegative = 0.1
    """Of that weight, in the cost-to-go."""
    fail_price: NonNegative = 2.0
    """Added to -log(1 - risk) around a pose that failed, in this cycle and later ones."""


class Failures(Predictor):
    """No foresight: a map of zeros, in which only failed poses raise the price.

    What the others have to beat.
    """

    name: Literal["failures"] = "failures"


class Sobel(Predictor):
    """Risk from gradients: Sobel operators, squared, averaged over a rover-sized kernel."""

    name: Literal["sobel"] = "sobel"
    policy: Policy = "always"
    weight_per_m: NonNegative = 40.0
    to_go_fraction: NonNegative = 0.3
    kernel_half_width_m: Positive = 1.2


class Network(Predictor):
    """Risk from a network that learnt the checker's verdicts."""

    name: Literal["network"] = "network"
    model: Annotated[str, Field(min_length=1)] = "auto"
    """auto: the shipped model for the checker and limits. Else the name of a shipped one, or the
    path of a model's folder."""
    threads: Count = 1
    """Of one inference."""


class Oracle(Predictor):
    """Risk that is the checker's own verdict in advance: what a perfect network would say."""

    name: Literal["oracle"] = "oracle"
    bins: Annotated[int, Field(ge=1, le=360)] = 16
    """Headings."""
    resolution_m: Annotated[float, Field(ge=0.02, le=0.5)] | None = None
    """Of its cells. null: the map's own for `fixed_box`, 0.2 m for the others."""
    reach_m: Annotated[float, Field(ge=0.5, le=50)] = 8.0
    """Half width of the square about the rover."""


class Kinematic(Section):
    """The rover settles on the ground at every step and goes exactly where it was told."""

    name: Literal["kinematic"] = "kinematic"
    settle_step_m: Positive = 0.02
    """Between judged states along an arc: finer than any checker's poses, and out of phase."""
    settle_turn_deg: Positive = 0.5
    """Between them in a turn in place."""
    settle_steer_deg: Positive = 2.0
    """Between them while the rover stands and its wheels steer, of the one that steers furthest."""
    limits: Limits | None = None
    """What is an unsafe state here, as `limits` is written; null: what the planner holds unsafe."""
    stop_at_limits: bool = True
    """An unsafe state ends the run with `unsafe_state`. False: the run drives on and counts them;
    it is no success."""


class Slip(Section):
    """Share of the way that wheels lose on soft ground: level x exp(slope / growth), up to a most.

    The slope is that along the way, uphill positive. Written as the name of a soil, as a soil with
    changes, `{soil: sand, level: 0.1}`, or as the numbers.
    """

    level: Annotated[float, Field(ge=0, lt=1)]
    """On level ground."""
    growth_deg: Positive
    """Slope over which slip grows by a factor e."""
    share_max: Annotated[float, Field(ge=0, lt=1)] = 0.95

    soils: ClassVar[dict[str, dict[str, float]]] = {
        "none": {"level": 0.0, "growth_deg": 10.0},
        "bedrock": {"level": 0.01, "growth_deg": 15.0},  # 20 deg: 4 %
        "compact": {"level": 0.03, "growth_deg": 11.0},  # 10 deg: 7 %, 20 deg: 18 %
        "sand": {"level": 0.08, "growth_deg": 8.0},  # 10 deg: 28 %, 15 deg: 52 %, 20 deg: 95 %
    }

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Numbers from the name of a soil, or from a soil and changes."""
        return from_preset("soil", data, "soil", cls.soils)

    def share(self, slope_rad: float) -> float:
        """Share of the commanded way that is lost at a slope along the way."""
        if self.level == 0.0:
            return 0.0
        exponent = min(math.degrees(slope_rad) / self.growth_deg, 50.0)
        return min(self.share_max, self.level * math.exp(exponent))


class Bullet(Section):
    """Rigid-body physics (PyBullet, extra `sim`): the rover drives with wheels that can slip."""

    name: Literal["bullet"] = "bullet"
    mass_kg: Positive = 1025.0
    """Of the whole rover; its parts keep their shares."""
    friction: Positive = 0.75
    """Coulomb's, between wheel and ground."""
    slip: Slip = Slip.model_validate("none")
    """Of soft ground, on top of what friction makes."""
    speed_m_s: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of the fastest wheel. Flight drives 0.042; faster ends within 0.02 m of that up to 0.2."""
    wheel_torque_nm: Positive = 400.0
    """At most, of a wheel's motor."""
    steps_per_s: Annotated[int, Field(ge=60, le=2000)] = 120
    solver_iterations: Annotated[int, Field(ge=10, le=1000)] = 50
    patch_half_width_m: Annotated[float, Field(ge=8.0)] = 16.0
    """Of the square of ground about the rover that is in the physics, and moves with it. A larger
    one takes more memory (0.7 kB a cell) and changes nothing but the last digits."""
    edge_m: Annotated[float, Field(ge=2.0)] = 3.0
    """From the map's edge: nearer the run ends with `map_edge`, since there is no ground beyond."""
    state_step_m: Positive = 0.02
    """Driven between recorded states, which are held against the limits."""
    state_turn_deg: Positive = 0.5
    """And turned. While wheels steer at a standstill, states are recorded ten times a second."""
    limits: Limits | None = Limits.model_validate("enav_like")
    """What is an unsafe state here, as `limits` is written; null: what the planner holds unsafe. A
    rover is a tenth of a metre off its path: the limits that it plans with leave room for that."""
    stop_at_limits: bool = True
    """A state beyond the limits or the belly on the ground ends the run with `unsafe_state`. False:
    it drives on, and what comes of it shows; it is no success."""


class TruthSensor(Section):
    """The true heights around the rover."""

    name: Literal["truth"] = "truth"
    half_width_m: Positive = 16.0
    """Of the local map."""


class Stereo(Section):
    """Stereo cameras on the mast, their points averaged in cells of a map that rolls along."""

    name: Literal["stereo"] = "stereo"
    half_width_m: Positive = 16.0
    """Of the local map, in which earlier views are remembered."""
    resolution_m: Annotated[float, Field(ge=0.02, le=0.5)] = 0.1
    """Of its cells."""
    fill_m: Annotated[float, Field(ge=0, le=2)] = 0.4
    """Holes up to this wide (an even number of cells), most of them behind rocks, count as the mean
    height around them, for costs and heuristics alone: the rover stands only on what it has seen.
    0: they are as unknown as all else that was not seen."""
    mast_m: tuple[float, float, Positive] = (0.80, -0.56, 1.98)
    """The cameras' place: forward, left, up in the rover frame."""
    azimuth_deg: Annotated[list[float], Field(min_length=1, max_length=16)] = [0.0, 60.0, -60.0]
    """Of the views at every stop, left positive."""
    elevation_deg: Annotated[float, Field(ge=-90, le=30)] = -32.0
    """Of the middle of a view; up positive."""
    width_deg: Annotated[float, Field(gt=0, lt=180)] = 96.0
    height_deg: Annotated[float, Field(gt=0, lt=180)] = 73.0
    pixel_deg: Annotated[float, Field(ge=0.02, le=5)] = 0.075
    """Of the images: 1,280 over the width. Points are half a map cell apart, rows on level ground
    and columns at range_max_m, where that is more than a pixel; else a pixel."""
    range_min_m: NonNegative = 0.5
    range_max_m: Annotated[float, Field(gt=0, le=1000)] = 12.0
    """Where rows of pixels on level ground are as far apart as map cells are wide, and ranges as
    uncertain."""
    baseline_m: Positive = 0.424
    disparity_sigma_px: NonNegative = 0.25
    """Error of matching: sigma of a range is range^2 x this x pixel [rad] / baseline."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of points that find no match."""
    known_start_m: NonNegative = 2.5
    """Ground this near the start is known, from the drive before."""

    @model_validator(mode="after")
    def _ranges_in_order(self) -> Self:
        if self.range_max_m <= self.range_min_m:
            raise PydanticCustomError("ranges", "range_max_m must be more than range_min_m")
        return self


class TruePose(Section):
    """The planner is told where the rover is."""

    name: Literal["truth"] = "truth"


class Odometry(Section):
    """A pose that is counted up from the start: its errors add up, as random walks."""

    name: str
    distance_sigma: NonNegative = 0.01
    """Error along, across and in height [m] after 1 m; after s metres sqrt(s) times that."""
    heading_sigma_deg: NonNegative = 0.1
    """Error of the heading after 1 m, or after turning by 1 rad in place, likewise."""


class VisualOdometry(Odometry):
    """The planner is told the pose that images give: slip is seen."""

    name: Literal["visual"] = "visual"


class WheelOdometry(Odometry):
    """The planner is told the pose that wheel turns and a gyro give: slip goes unnoticed."""

    name: Literal["wheel"] = "wheel"


# A new part is its model above and one name here.
Checker = Verified | FixedBox | Probabilistic | Settle
Planner = Enav
Heuristic = NoHeuristic | Failures | Sobel | Network | Oracle
World = Kinematic | Bullet
Sensor = TruthSensor | Stereo
Localization = TruePose | VisualOdometry | WheelOdometry

KINDS: dict[str, tuple[type[Section], ...]] = {
    "checker": (Verified, FixedBox, Probabilistic, Settle),
    "planner": (Enav,),
    "heuristic": (NoHeuristic, Failures, Sobel, Network, Oracle),
    "world": (Kinematic, Bullet),
    "sensor": (TruthSensor, Stereo),
    "localization": (TruePose, VisualOdometry, WheelOdometry),
}


def names_of(kind: str) -> list[str]:
    """The names that a part which is chosen by name may have."""
    return [str(section.model_fields["name"].default) for section in KINDS[kind]]


def _by_name(kind: str) -> BeforeValidator:
    """Takes `{name: x, ...}` or just `x`, and builds the model of that name."""

    def build(data: Any) -> Any:
        if isinstance(data, Section):
            return data
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, Mapping):
            raise PydanticCustomError("kind", "must be a name or a mapping with a name")
        known = dict(zip(names_of(kind), KINDS[kind], strict=True))
        name = data.get("name", next(iter(known)))
        if name not in known:
            hint = suggestion(str(name), known)
            raise PydanticCustomError(
                "unknown_name",
                "no {kind} '{name}'{hint}",
                {"kind": kind, "name": str(name), "hint": hint},
            )
        return known[name].model_validate(data)

    return BeforeValidator(build)


# ------------------------------------------------------------------------------------ the whole


class Traverse(Section):
    """When a run ends."""

    goal_tolerance_m: Positive = 1.0
    """The run ends where the rover is told to be this near."""
    goal_miss_m: Positive = 2.0
    """With `goal_missed` where it is further than this in truth."""
    max_cycles: Count = 400
    """More planning cycles than this: `timeout`."""
    max_driven_factor: Annotated[float, Field(gt=1)] = 5.0
    """Driven more than this times the straight line: `distance_limit`."""
    ace_budget: Count | None = None
    """ACE evaluations a cycle may spend; null for no limit."""
    work_budget: Count | None = None
    """Poses a cycle may look at while it ranks and searches; null for no limit."""
    stuck_cycles: Count = 3
    """Cycles in a row that end on a spent budget without moving: `stuck`."""
    allow_coarse_cells: bool = False
    """Plan, check and drive on maps whose cells are coarser than 0.2 m all the same."""


_RADIANS = re.compile(r"_rad(\])")
"""The end of an angle's name in the core's messages; its value is in degrees there."""


def _polygon(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) < 3:
        raise PydanticCustomError("polygon", "a polygon needs at least three points")
    return points


Polygon = Annotated[list[tuple[float, float]], AfterValidator(_polygon)]


class Config(Section):
    """Everything a run depends on besides its terrain, start, goal and seed."""

    rover: Rover = Rover()
    limits: Limits = Limits.model_validate("flight_like")
    checker: Annotated[Checker, _by_name("checker")] = Verified()
    planner: Annotated[Planner, _by_name("planner")] = Enav()
    heuristic: Annotated[Heuristic, _by_name("heuristic")] = NoHeuristic()
    world: Annotated[World, _by_name("world")] = Kinematic()
    sensor: Annotated[Sensor, _by_name("sensor")] = TruthSensor()
    localization: Annotated[Localization, _by_name("localization")] = TruePose()
    traverse: Traverse = Traverse()
    keep_out: list[Polygon] = []
    """Polygons [[x, y], ...] in metres that no path may touch."""
    keep_in: list[Polygon] = []
    """Where there are any, ground outside all of them is forbidden."""

    @model_validator(mode="after")
    def _accepted_by_the_core(self) -> Self:
        """What the core would refuse later is refused here, with its ranges."""
        try:
            self.rover_model()
            if self.world.limits is not None:
                self.model_copy(update={"limits": self.world.limits}).rover_model()
            self.build_checker(1)
            self.to_core_planner()
        except ConfigError as fault:
            message = _RADIANS.sub(r"_deg\1", str(fault))
            raise PydanticCustomError("core", "{why}", {"why": message}) from fault
        checker, tree = self.checker, self.planner.tree
        for name, value, most, unit in (
            ("ace_step_m", tree.ace_step_m, checker.pose_step_m, "m"),
            ("turn_step_deg", tree.turn_step_deg, checker.turn_step_deg, "deg"),
        ):
            if value is not None and value > most * (1.0 + 1e-9):
                raise PydanticCustomError(
                    "spacing",
                    "planner.tree.{name} is {value} {unit}: {checker} needs poses no further"
                    " apart than {most} {unit}",
                    {
                        "name": name,
                        "value": f"{value:g}",
                        "unit": unit,
                        "checker": checker.name,
                        "most": f"{most:.4g}",
                    },
                )
        return self

    def to_core_planner(self, max_map_cells: int = 0, max_risk_cells: int = 0) -> _core.EnavConfig:
        """The planner's struct, with the checker's spacing of poses and room for maps.

        Raises:
            ConfigError: the core refuses a value; the message names its field.
        """
        checker = self.checker
        return self.planner.to_core(
            self.heuristic, max_map_cells, max_risk_cells, checker.pose_step_m,
            checker.turn_step_deg,
        )  # fmt: skip

    def rover_model(self) -> _core.RoverModel:
        """Geometry and limits for the core.

        Raises:
            ConfigError: the core refuses a value; the message names its field.
        """
        from mlnav import _core

        model = _core.RoverModel()
        model.geometry = self.rover.to_core()
        model.limits = self.limits.to_core()
        try:
            model.validate()
        except _core.CoreError as fault:
            raise ConfigError(f"rover or limits: {fault}") from fault
        return model

    def build_checker(self, max_map_cells: int) -> _core.Checker:
        """The checker, ready for maps of up to so many cells; it still needs a map.

        Raises:
            ConfigError: the core refuses a value; the message names its field.
        """
        from mlnav import _core

        model = self.rover_model()
        try:
            return self.checker.build(model, max_map_cells)
        except _core.CoreError as fault:
            raise ConfigError(f"checker: {fault}") from fault

    def replaced(self, settings: Iterable[str] = (), **parts: Any) -> Self:
        """A copy with whole parts replaced, then single keys, `path.to.key=value`.

        Raises:
            ConfigError: a path or value is bad.
        """
        data = self.model_dump(mode="json")
        data.update({k: v for k, v in parts.items() if v is not None})
        for setting in settings:
            set_value(data, setting)
        return type(self).checked(data)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A copy with the values of some keys, by path, changed.

        Raises:
            ConfigError: a path or value is bad.
        """
        data = self.model_dump(mode="json")
        for path, value in values.items():
            put_value(data, path, value)
        return type(self).checked(data)

    def to_yaml(self) -> str:
        """YAML that `load_config` reads back to an equal configuration."""
        data = json.loads(self.model_dump_json())
        return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100)

    @classmethod
    def checked(cls, data: Any, source: str = "") -> Self:
        """A configuration from the tree that YAML holds.

        Raises:
            ConfigError: it is not a valid one.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as fault:
            raise ConfigError(told(fault, data, source)) from fault


def parse_config(text: str, source: str = "") -> Config:
    """A configuration from YAML text; keys left out have their defaults.

    Raises:
        ConfigError: not YAML, or not a valid configuration.
    """
    return Config.checked(parse_yaml(text, source), source)


def parse_yaml(text: str, source: str = "") -> dict[str, Any]:
    """The mapping that YAML text holds; empty for no text. A key given twice is refused.

    Raises:
        ConfigError: not YAML, or no mapping.
    """
    try:
        data = read_yaml(text)
    except yaml.YAMLError as fault:
        place = f"{source}: " if source else ""
        raise ConfigError(f"{place}not YAML: {' '.join(str(fault).split())}") from fault
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(f"{source or 'configuration'}: must be a mapping of sections")
    return data


def told(fault: ValidationError, data: Any, source: str = "") -> str:
    """What is wrong in `data`, in one line: each bad key with its path, and why."""
    lines = "; ".join(_explained(error, data) for error in fault.errors())
    return f"{source}: {lines}" if source else lines


def load_config(path: str | os.PathLike[str]) -> Config:
    """A configuration from a YAML file.

    Raises:
        ConfigError: the file cannot be read, or is not a valid configuration.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: cannot be read: {fault}") from fault
    return parse_config(text, str(path))


def json_schema() -> dict[str, Any]:
    """JSON Schema of the YAML file, for editors."""
    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    definitions = schema["$defs"]
    short = {"type": "string", "enum": list(Limits.presets)}
    numbers = definitions["Limits"]
    base = {"base": short | {"description": "A set to start from."}}
    definitions["Limits"] = {
        "description": numbers["description"],
        "anyOf": [
            short,
            numbers,
            {**numbers, "properties": base | numbers["properties"], "required": ["base"]},
        ],
    }
    for kind in KINDS:
        field = schema["properties"][kind]
        variants = field.pop("anyOf", None) or [{"$ref": field.pop("$ref")}]
        field["anyOf"] = [{"type": "string", "enum": names_of(kind)}, *variants]
    return schema


# ------------------------------------------------------------------------------------- details


class _Dumper(yaml.SafeDumper):
    """Block style, but lists of numbers on one line."""


def _short_lists(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    flat = all(not isinstance(v, dict) for v in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=flat)


_Dumper.add_representer(list, _short_lists)


def _filled(struct: T, **values: Any) -> T:
    for name, value in values.items():
        setattr(struct, name, value)
    return struct


def set_value(data: dict[str, Any], setting: str) -> None:
    """Set one value in the tree that YAML holds, `path.to.key=value`.

    Raises:
        ConfigError: it is not of this form, or the path leads through something else.
    """
    path, sign, text = setting.partition("=")
    keys = path.strip().split(".")
    if not sign or not all(keys):
        raise ConfigError(f"{setting!r}: must be path.to.key=value")
    try:
        value = read_yaml(text)
    except yaml.YAMLError as fault:
        why = getattr(fault, "problem", None) or "not YAML"
        raise ConfigError(f"{path}: value {text!r}: {why}") from fault
    put_value(data, ".".join(keys), value)


def put_value(data: dict[str, Any], path: str, value: Any) -> None:
    """Put one value in the tree that YAML holds, at `path.to.key`.

    Raises:
        ConfigError: the path leads through something else.
    """
    node: Any = data
    keys = path.split(".")
    for depth, key in enumerate(keys[:-1]):
        child = node.get(key, {})
        if isinstance(child, str) and keys[depth] == "limits":
            child = {"base": child}  # a named set: change a number of it
        elif isinstance(child, str) and keys[depth] in KINDS:
            child = {"name": child}
        elif not isinstance(child, dict):
            raise ConfigError(f"{'.'.join(keys[: depth + 1])}: holds no keys to set")
        node[key] = dict(child)
        node = node[key]
    node[keys[-1]] = value


def _explained(error: ErrorDetails, data: Any) -> str:
    path: list[str] = []
    node = data
    parts = list(error["loc"])
    for i, part in enumerate(parts):
        inside = (isinstance(node, Mapping) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if inside or (i == len(parts) - 1 and error["type"] == "missing"):
            path.append(str(part))
            node = node[part] if inside else None
    message = error["msg"].removeprefix("Value error, ")
    return f"{'.'.join(path)}: {message}" if path else message
