"""Simulation: worlds that a rover drives in, sensors that see them, and the traverse loop."""

from mlnav.core import reason_names
from mlnav.sim.endpoints import Screen, default_endpoints, drawn_endpoints, screen
from mlnav.sim.localization import Localization
from mlnav.sim.loop import (
    SimError,
    at_rest,
    checked_point,
    make_world,
    one_cycle,
    start_pose,
    traverse,
)
from mlnav.sim.navigator import SimulatedNavigator
from mlnav.sim.records import CycleRecord, TraverseResult, out_of_work
from mlnav.sim.sensor import Sensor, TruthSensor
from mlnav.sim.state import RoverState
from mlnav.sim.world import Execution, KinematicWorld, SettledStates, World, WorldError

__all__ = [
    "CycleRecord", "Execution", "KinematicWorld", "Localization", "RoverState", "Screen", "Sensor",
    "SettledStates", "SimError", "SimulatedNavigator", "TraverseResult", "TruthSensor", "World",
    "WorldError", "at_rest", "checked_point", "default_endpoints", "drawn_endpoints",
    "make_world", "one_cycle", "out_of_work", "reason_names", "screen", "start_pose", "traverse",
]  # fmt: skip
