"""Navigation on local heightmaps: predict risk, plan, answer with a motion.

Needs no simulation and no terrains: a rover or a ROS node brings heightmaps of its own.
"""

from mlnav.nav.cells import MAX_CELL_M, fine_enough
from mlnav.nav.motion import Motion, Pose
from mlnav.nav.navigator import Cycle, MapError, Navigator
from mlnav.nav.planner import (
    CandidatePlanner,
    Plan,
    Planner,
    PlanRequest,
    PlanResult,
    make_planner,
    with_candidates,
)
from mlnav.nav.zones import zone_mask

__all__ = [
    "MAX_CELL_M", "CandidatePlanner", "Cycle", "MapError", "Motion", "Navigator", "Plan",
    "PlanRequest", "PlanResult", "Planner", "Pose", "fine_enough", "make_planner",
    "with_candidates", "zone_mask",
]  # fmt: skip
