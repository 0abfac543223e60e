"""When a run ends, and where it may not go."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from mlnav.config.section import Count, Positive, Section, refusal


class Traverse(Section):
    """When a run ends."""

    goal_tolerance_m: Positive = 1.0
    """The run ends where the estimated pose is this near the goal."""
    goal_miss_m: Positive = 2.0
    """With `goal_missed` where it is further than this in truth."""
    max_cycles: Count = 400
    """More planning cycles than this: `timeout`."""
    max_driven_factor: Annotated[float, Field(gt=1)] = 5.0
    """Driven more than this times the straight line: `distance_limit`."""
    ace_budget: Count | None = None
    """ACE evaluations a cycle may spend; null for no limit."""
    work_budget: Count | None = None
    """Poses a cycle may look up while it ranks and searches; null for no limit."""
    stuck_cycles: Count = 3
    """Cycles in a row that end on a spent budget without moving: `stuck`."""
    allow_coarse_cells: bool = False
    """Plan, check and drive on maps whose cells are coarser than 0.2 m all the same."""


def _polygon(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) < 3:
        raise refusal("a polygon needs at least three points")
    return points


Polygon = Annotated[list[tuple[float, float]], AfterValidator(_polygon)]
