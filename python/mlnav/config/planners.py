"""The planners."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from mlnav.config.core_fields import CostmapConfig, EnavConfig, PathTreeConfig
from mlnav.config.heuristics import Heuristic
from mlnav.config.section import ConfigError, Count, PartSection, filled

if TYPE_CHECKING:
    from mlnav import _core


class Costmap(CostmapConfig):
    """Coarse costs per metre: 1 + (tilt / tilt_scale)^2 + roughness / roughness_scale."""


class PathTree(PathTreeConfig):
    """Candidates: turn in place, then an arc, then another arc."""


class Planner(PartSection):
    """The base of all planners."""

    kind: ClassVar[str] = "planner"
    overthink_evaluations: Count = EnavConfig.model_fields["overthink_evaluations"].default
    """A cycle with more ACE evaluations than this is an overthink."""

    @property
    def align_cells(self) -> int:
        """Local maps begin at multiples of so many cells."""
        return 1

    @property
    def reach_m(self) -> float:
        """How far from the rover it plans, for plots."""
        return 6.0


class Enav(EnavConfig, Planner):
    """The ENav-like planner."""

    name: Literal["enav"] = "enav"
    costmap: Costmap = Costmap()
    tree: PathTree = PathTree()

    @property
    def align_cells(self) -> int:
        """Those of a cell of the costmap."""
        return self.costmap.coarsening

    @property
    def reach_m(self) -> float:
        """Two arcs."""
        return 2.0 * self.tree.arc_length_m

    def to_core(
        self, heuristic: Heuristic | None = None, map_cells: int = 0, risk_cells: int = 0
    ) -> _core.EnavConfig:
        """The core's struct, with room for maps of the given sizes (the core's default if 0).

        Raises ConfigError: the core refuses a value; the message names its field.
        """
        from mlnav import _core

        config = filled(_core.EnavConfig(), self)
        if heuristic is not None:
            filled(config.risk, heuristic)
            filled(config.risk_policy, heuristic)
        config.max_map_cells = map_cells or config.max_map_cells
        config.max_risk_cells = risk_cells or config.max_risk_cells
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
