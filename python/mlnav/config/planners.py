"""The planners."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from mlnav.config.checkers import CLOSE_STEP_M, CLOSE_TURN_DEG
from mlnav.config.heuristics import Heuristic
from mlnav.config.section import Angle, ConfigError, NonNegative, Positive, Section, filled

if TYPE_CHECKING:
    from mlnav import _core


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
        filled(
            config.costmap,
            coarsening=self.costmap.coarsening,
            patch_half_width_m=self.costmap.patch_half_width_m,
            tilt_scale_rad=math.radians(self.costmap.tilt_scale_deg),
            roughness_scale_m=self.costmap.roughness_scale_m,
            tilt_limit_rad=math.radians(self.costmap.tilt_limit_deg),
            unknown_cost=self.costmap.unknown_cost,
        )
        filled(
            config.tree,
            turn_rad=[math.radians(t) for t in self.tree.turn_deg],
            curvature_per_m=list(self.tree.curvature_per_m),
            arc_length_m=self.tree.arc_length_m,
            ace_step_m=self.tree.ace_step_m or pose_step_m,
            turn_step_rad=math.radians(self.tree.turn_step_deg or turn_step_deg),
        )
        if heuristic is not None:
            filled(
                config.risk,
                weight_per_m=heuristic.weight_per_m,
                to_go_fraction=heuristic.to_go_fraction,
                fail_price=heuristic.fail_price,
            )
        filled(
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
