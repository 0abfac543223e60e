"""Simulation: worlds that a rover drives in, sensors that see them, and the traverse loop."""

from mlnav.core import reason_names
from mlnav.sim.endpoints import Screen, default_endpoints, drawn_endpoints, screen
from mlnav.sim.localization import Whereabouts
from mlnav.sim.loop import (
    SimError,
    at_rest,
    checked_point,
    lost_run,
    make_world,
    one_cycle,
    start_pose,
    traverse,
)
from mlnav.sim.metrics import OUTCOMES, CycleRecord, TraverseResult, out_of_work
from mlnav.sim.navigator import Cycle, Navigator
from mlnav.sim.sensor import Sensor, TruthSensor, zone_mask
from mlnav.sim.world import (
    Execution,
    KinematicWorld,
    Motion,
    SettledStates,
    World,
    WorldError,
)

__all__ = [
    "OUTCOMES",
    "Cycle",
    "CycleRecord",
    "Execution",
    "KinematicWorld",
    "Motion",
    "Navigator",
    "Screen",
    "Sensor",
    "SettledStates",
    "SimError",
    "TraverseResult",
    "TruthSensor",
    "Whereabouts",
    "World",
    "WorldError",
    "at_rest",
    "checked_point",
    "default_endpoints",
    "drawn_endpoints",
    "lost_run",
    "make_world",
    "one_cycle",
    "out_of_work",
    "reason_names",
    "screen",
    "start_pose",
    "traverse",
    "zone_mask",
]
