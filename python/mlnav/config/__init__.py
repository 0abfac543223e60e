"""The configuration of a run: one validated tree, written by people as YAML.

Keys carry their units; angles are degrees here and radians in the core. Unknown keys are refused
with the nearest known name. Defaults repeat the C++ defaults (a test holds them equal).

Parts that are chosen by name are one small model each; `mlnav.parts` finds them.
"""

from mlnav.config.checkers import (
    Checker,
    FixedBox,
    Probabilistic,
    Settle,
    Verified,
)
from mlnav.config.heuristics import (
    Failures,
    Network,
    NoHeuristic,
    Oracle,
    Predictor,
    Sobel,
)
from mlnav.config.localizations import (
    Localization,
    Odometry,
    TruePose,
    VisualOdometry,
    WheelOdometry,
)
from mlnav.config.planners import Enav, Planner
from mlnav.config.rover import Limits, Rover
from mlnav.config.section import (
    ConfigError,
    Count,
    NonNegative,
    Positive,
    Section,
    numbers_of,
    numbers_of_struct,
)
from mlnav.config.sensors import Sensor, Stereo, TruthSensor
from mlnav.config.whole import Config, json_schema, load_config, parse_config
from mlnav.config.worlds import Bullet, Kinematic, World
from mlnav.config.yaml import format_validation_error, parse_yaml, set_value

__all__ = [
    "Bullet",
    "Checker",
    "Config",
    "ConfigError",
    "Count",
    "Enav",
    "Failures",
    "FixedBox",
    "Kinematic",
    "Limits",
    "Localization",
    "Network",
    "NoHeuristic",
    "NonNegative",
    "Odometry",
    "Oracle",
    "Planner",
    "Positive",
    "Predictor",
    "Probabilistic",
    "Rover",
    "Section",
    "Sensor",
    "Settle",
    "Sobel",
    "Stereo",
    "TruePose",
    "TruthSensor",
    "Verified",
    "VisualOdometry",
    "WheelOdometry",
    "World",
    "format_validation_error",
    "json_schema",
    "load_config",
    "numbers_of",
    "numbers_of_struct",
    "parse_config",
    "parse_yaml",
    "set_value",
]
