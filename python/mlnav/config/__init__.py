"""The configuration of a run: one validated tree, written by people as YAML.

Keys carry their units; angles are degrees here and radians in the core. Unknown keys are refused
with the nearest known name. Defaults repeat the C++ defaults (a test holds them equal).

Parts that are chosen by name (`KINDS`) are one small model each, in the union of their kind: a new
one is a model and one line in its union.
"""

from mlnav.config.checkers import (
    CLOSE_STEP_M,
    CLOSE_TURN_DEG,
    WIDE_STEP_M,
    WIDE_TURN_DEG,
    FixedBox,
    Probabilistic,
    Settle,
    Verified,
)
from mlnav.config.heuristics import (
    Failures,
    Heuristic,
    Network,
    NoHeuristic,
    Oracle,
    Policy,
    Predictor,
    Sobel,
)
from mlnav.config.kinds import KINDS, Checker, Localization, Planner, Sensor, World, names_of
from mlnav.config.localizations import Odometry, TruePose, VisualOdometry, WheelOdometry
from mlnav.config.planners import Costmap, Enav, PathTree
from mlnav.config.rover import Limits, Rover
from mlnav.config.section import (
    Angle,
    ConfigError,
    Count,
    NonNegative,
    Positive,
    Section,
    from_preset,
    numbers_of,
    numbers_of_struct,
    suggestion,
)
from mlnav.config.sensors import Stereo, TruthSensor
from mlnav.config.traverse import Polygon, Traverse
from mlnav.config.whole import Config, json_schema, load_config, parse_config
from mlnav.config.worlds import Bullet, Kinematic, Slip
from mlnav.config.yaml import parse_yaml, put_value, set_value, told

__all__ = [
    "CLOSE_STEP_M",
    "CLOSE_TURN_DEG",
    "KINDS",
    "WIDE_STEP_M",
    "WIDE_TURN_DEG",
    "Angle",
    "Bullet",
    "Checker",
    "Config",
    "ConfigError",
    "Costmap",
    "Count",
    "Enav",
    "Failures",
    "FixedBox",
    "Heuristic",
    "Kinematic",
    "Limits",
    "Localization",
    "Network",
    "NoHeuristic",
    "NonNegative",
    "Odometry",
    "Oracle",
    "PathTree",
    "Planner",
    "Policy",
    "Polygon",
    "Positive",
    "Predictor",
    "Probabilistic",
    "Rover",
    "Section",
    "Sensor",
    "Settle",
    "Slip",
    "Sobel",
    "Stereo",
    "Traverse",
    "TruePose",
    "TruthSensor",
    "Verified",
    "VisualOdometry",
    "WheelOdometry",
    "World",
    "from_preset",
    "json_schema",
    "load_config",
    "names_of",
    "numbers_of",
    "numbers_of_struct",
    "parse_config",
    "parse_yaml",
    "put_value",
    "set_value",
    "suggestion",
    "told",
]
