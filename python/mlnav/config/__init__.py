"""The configuration of a run: one validated tree, written by people as YAML.

Keys carry their units; angles are degrees here and radians in the core. Defaults repeat the C++
defaults (a test holds them equal). Parts are one small model each; `mlnav.parts` finds them.
"""

from mlnav.config.checkers import Checker, FixedBox, Probabilistic, Settle, Verified
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
from mlnav.config.localizations import (
    Localization,
    Odometry,
    TruePose,
    VisualOdometry,
    WheelOdometry,
)
from mlnav.config.planners import Costmap, Enav, PathTree, Planner
from mlnav.config.rover import Limits, Rover, Tracking
from mlnav.config.section import (
    ConfigError,
    Count,
    NonNegative,
    PartSection,
    Positive,
    Section,
    from_preset,
    numbers_of,
    numbers_of_struct,
)
from mlnav.config.sensors import Sensor, Stereo, TruthSensor
from mlnav.config.traverse import Polygon, Traverse
from mlnav.config.whole import Config, json_schema, load_config, parse_config
from mlnav.config.worlds import Bullet, Kinematic, Slip, World
from mlnav.config.yaml import format_validation_error, parse_yaml, put_value, set_value

__all__ = [
    "Bullet", "Checker", "Config", "ConfigError", "Costmap", "Count", "Enav", "Failures",
    "FixedBox", "Heuristic", "Kinematic", "Limits", "Localization", "Network", "NoHeuristic",
    "NonNegative", "Odometry", "Oracle", "PartSection", "PathTree", "Planner", "Policy", "Polygon",
    "Positive", "Predictor", "Probabilistic", "Rover", "Section", "Sensor", "Settle", "Slip",
    "Sobel", "Stereo", "Tracking", "Traverse", "TruePose", "TruthSensor", "Verified",
    "VisualOdometry", "WheelOdometry", "World", "format_validation_error", "from_preset",
    "json_schema", "load_config", "numbers_of", "numbers_of_struct", "parse_config", "parse_yaml",
    "put_value", "set_value",
]  # fmt: skip
