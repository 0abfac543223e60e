"""Compiled core. Thin: arrays must be C-contiguous and of the exact dtype; `mlnav.core` converts.

Frames and units follow the C++ headers: world x east, y north, metres, radians counter-clockwise
from +x; maps are row-major ``z[iy, ix]`` float32 with NaN for unknown. Every call that computes
releases the GIL. Faults raise `CoreError`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NotRequired, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

__version__: str
REASONS: Final[tuple[str, ...]]  # name of reason bit 0, 1, ...
STAGES: Final[tuple[str, ...]]  # names of the planner's stages, in order

class CoreError(ValueError):
    """A status of the core: ``args[0]`` is '<status>: <what it means> [<field>]'."""

class FieldInfo(TypedDict):
    """A field of a configuration struct, as its field table in C++ has it."""

    name: str
    type: str  # float, int, bool, list[float], str, or the name of a struct in FIELDS
    unit: str  # rad: an angle; empty: a plain number
    default: Any  # None for a struct
    lo: float | None  # the range is closed; None: there is none, or another field decides
    hi: float | None  # inf: no limit
    words: str
    max_length: NotRequired[int]  # of a list
    choices: NotRequired[list[str]]  # of a str

FIELDS: Final[dict[str, tuple[FieldInfo, ...]]]  # of every configuration struct, by its name

# From here on written by mlnav.config.generate.

class CostmapConfig:
    coarsening: int
    patch_half_width_m: float
    tilt_scale_rad: float
    roughness_scale_m: float
    tilt_limit_rad: float
    unknown_cost: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class SobelConfig:
    kernel_half_width_m: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class RoverGeometry:
    wheel_radius_m: float
    wheel_width_m: float
    front_x_m: float
    rear_x_m: float
    front_y_m: float
    middle_y_m: float
    rear_y_m: float
    rocker_pivot_x_m: float
    rocker_pivot_z_m: float
    bogie_pivot_x_m: float
    bogie_pivot_z_m: float
    pan_front_x_m: float
    pan_rear_x_m: float
    pan_half_width_m: float
    pan_height_m: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class Tube:
    along_m: float
    across_m: float
    heading_rad: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class SafetyLimits:
    clearance_min_m: float
    tilt_max_rad: float
    bogie_max_rad: float
    differential_max_rad: float
    wheel_drop_max_m: float
    relief_max_m: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...
    @staticmethod
    def enav_like() -> SafetyLimits: ...
    @staticmethod
    def flight_like() -> SafetyLimits: ...

class FixedBoxConfig:
    half_length_m: float
    half_width_m: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class ProbabilisticConfig:
    sigma_fraction: float
    risk_max: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class VerifiedConfig:
    enclosed_m: float
    max_tries: int
    first_length_m: float
    shortest_m: float
    max_boxes: int
    joint_m: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class RiskPricing:
    weight_per_m: float
    to_go_fraction: float
    fail_price: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class RiskPolicy:
    ask: Literal["always", "on_failure"]
    persist_cycles: int
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class PathTreeConfig:
    turn_rad: list[float]
    curvature_per_m: list[float]
    arc_length_m: float
    ace_step_m: float
    turn_step_rad: float
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

class EnavConfig:
    costmap: CostmapConfig
    tree: PathTreeConfig
    risk: RiskPricing
    risk_policy: RiskPolicy
    turn_cost: float
    turn_cost_per_rad: float
    commit_length_m: float
    commit_turn_rad: float
    short_paths: bool
    riskiest_first: bool
    prove_beyond_commitment: bool
    overthink_evaluations: int
    memory_poses: int
    visit_cost_per_m: float
    visit_radius_m: float
    flip_cost: float
    memory_failures: int
    max_map_cells: int
    max_risk_cells: int
    def __init__(self) -> None: ...
    def validate(self) -> None: ...

# Up to here.

class RoverModel:
    geometry: RoverGeometry
    limits: SafetyLimits
    tracking: Tube
    def __init__(self) -> None: ...
    def validate(self) -> None: ...
    def wheel_steering_rad(self, curvature_per_m: float) -> F64:
        """(6,) angle of each wheel against the rover on an arc; infinite curvature: in a turn."""
    def wheel_plan(self) -> F64:
        """(6, 2) nominal axle x, y: front, middle, rear of the left side, then of the right."""

class Grid:
    """A heightmap the core can look at; keeps `z` alive."""

    def __init__(
        self,
        z: F32,
        resolution_m: float,
        origin_x_m: float,
        origin_y_m: float,
        height_error_m: F32 | None = None,
    ) -> None: ...
    @property
    def z(self) -> F32: ...
    @property
    def height_error_m(self) -> F32 | None:
        """(ny, nx): bound on each height's error [m]; None: they are exact."""
    @property
    def resolution_m(self) -> float: ...
    @property
    def origin_m(self) -> tuple[float, float]: ...
    def heights(self, xy: F64) -> F64:
        """(n, 2) -> (n,) bilinear heights; NaN outside or over unknown ground."""
    def wheel_heights(self, model: RoverModel, poses: F64) -> F64:
        """(n, 3) wheel x, y, heading -> (n,) H of level axles, NaN where unknown or outside."""

class PythonChecker(Protocol):
    """What `Checker.of_python` makes a checker of. `Checker` itself is one.

    Where it has them, `report(poses)`, some of the columns of `Checker.report`, and `settings`, a
    mapping of names to numbers, are used too.
    """

    def set_map(self, grid: Grid) -> object:
        """Answer about this map from now on; called before anything is asked."""
    def reasons(self, poses: F64) -> NDArray[np.integer] | Sequence[int]:
        """(n, 4) x, y, heading, curvature -> (n,) reason bits as of REASONS, 0 = safe.

        Planners ask about one sweep at a time: poses along it, at most the attribute `spacing_m`
        apart (0.05 m without it). Poses are finite; the curvature is infinite in a turn in place.
        With an attribute `takes_sweeps` that is true, rows are those of `Checker.reasons`, six
        wide; with `sees_steering` that is false, re-steering is not asked about.
        """

class Checker:
    @staticmethod
    def of_python(
        make: Callable[[], PythonChecker], model: RoverModel, name: str = "python"
    ) -> Checker:
        """A checker written in Python, for planners too.

        `make` is called for every planner and for every map of this checker, so that each has an
        object of its own. What the object raises in `plan()` counts as `not_certified`, ends its
        being asked in that cycle, and is raised when the cycle is over.
        """
    @staticmethod
    def fixed_box(model: RoverModel, config: FixedBoxConfig, max_map_cells: int) -> Checker: ...
    @staticmethod
    def settle(model: RoverModel) -> Checker: ...
    @staticmethod
    def verified(model: RoverModel, config: VerifiedConfig) -> Checker: ...
    @staticmethod
    def probabilistic(
        model: RoverModel, boxes: FixedBoxConfig, config: ProbabilisticConfig, max_map_cells: int
    ) -> Checker: ...
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> RoverModel: ...
    @property
    def settings(self) -> dict[str, float]:
        """The values it is set to, by name."""
    def set_map(self, grid: Grid) -> None:
        """Answer about this map from now on; calls under way in other threads keep theirs."""
    def reasons(self, sweeps: F64) -> NDArray[np.uint16]:
        """(n, 3) x, y, heading -> (n,) reason bits, 0 = safe. First failing stage only.

        A fourth column is the curvature that the corner wheels are steered for [1/m], left
        positive, infinite for turning in place; without it they stand straight. So do all calls
        that take poses. A fifth is how far the rover moves from there, along that arc [m] or
        turning in place [rad]: a sweep, safe all along. A sixth, where not NaN, is the curvature
        that the wheels are re-steered from, at a standstill.
        """
    def report(self, sweeps: F64) -> dict[str, NDArray[np.generic]]:
        """(n, 3 to 6) -> columns: safe (bool), reasons (uint16), roll_rad, pitch_rad,
        differential_rad, bogie_left_rad, bogie_right_rad and origin_z_m (n, 2) bounds,
        tilt_max_rad, clearance_min_m, relief_max_m, margin_tilt_rad, margin_bogie_rad,
        margin_differential_rad, margin_clearance_m, margin_relief_m (n,), risk (n,) of
        `probabilistic`, else NaN,
        inner_steps, lookups, ranges (int32)."""
    def ace_map(self, bins: int) -> NDArray[np.uint16]:
        """(bins, ny, nx) reasons at every cell centre and heading 2 pi k / bins."""

def settle(
    grid: Grid,
    model: RoverModel,
    poses: F64,
    start_heights_m: F64 | None = None,
    steering_rad: F64 | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Settle at (n, 3) or (n, 4) poses, from H at the nominal wheels or from (n, 6) start heights.

    Wheels are steered for the poses' curvature, or each by its own of (n, 6) `steering_rad`.

    Columns: status (uint8, 0 = settled), roll_rad, pitch_rad, differential_rad, bogie_left_rad,
    bogie_right_rad, origin_z_m, tilt_rad, clearance_m, relief_max_m, residual_m (n,), relief_m,
    heights_m, forward_m, left_m (n, 6), steps, lookups (int32), safe (bool), reasons (uint16).
    """

def clearance(grid: Grid, model: RoverModel, poses: F64, attitudes: F64) -> F64:
    """Belly clearance [m] at (n, 3) poses with (n, 3) roll_rad, pitch_rad, origin_z_m, settled or
    not; NaN over unknown ground or beyond the border.
    """

def cast_view(
    grid: Grid,
    eye_m: tuple[float, float, float],
    azimuth_rad: F64,
    elevation_rad: F64,
    range_m: tuple[float, float],
) -> F32:
    """(azimuths, elevations) ranges along rays from x, y, z to where they meet the ground first.

    Elevations ascend, within 89.9 degrees of the horizon; ranges are a minimum and a maximum. NaN:
    no hit between them. Unknown ground gives no hits and hides nothing.
    """

def status_name(status: int) -> str: ...
def costmap(
    grid: Grid, config: CostmapConfig, keep_out: NDArray[np.uint8] | None = None
) -> dict[str, object]:
    """cost_per_m, tilt_rad, roughness_m (cny, cnx) float32; resolution_m, origin_m."""

def cost_to_go(
    cost_per_m: F32,
    resolution_m: float,
    origin_x_m: float,
    origin_y_m: float,
    goal_x_m: float,
    goal_y_m: float,
    outside_cost_per_m: float = 1.0,
    extra_cost_per_m: F32 | None = None,
) -> F32: ...
def sobel_risk(grid: Grid, kernel_half_width_m: float = 1.2) -> F32:
    """(ny, nx) risk in [0, 1)."""

class PlanResult:
    """One cycle. Angles in radians, lengths in metres, times in seconds."""

    outcome: str  # path | goal_reached | no_safe_path | budget_exhausted | start_unsafe
    start_reasons: int
    turn_rad: float
    curvature_per_m: float
    length_m: float
    commit_end: tuple[float, float, float]
    path_index: int
    short_path: bool  # only the start of that candidate passed
    path_cost: float
    path: F64  # (n, 3) every pose the checker passed, in order, the start first
    ace_evaluations: int
    ace_floor: int
    ace_boxes: int  # what the evaluations cost: boxes of states,
    ace_lookups: int  # look-ups of H,
    ace_ranges: int  # and bounds of H over many places
    overthink: bool
    paths: int
    paths_finite: int
    paths_tried: int
    chosen_rank: int
    work: int  # search work, in poses looked at
    work_exhausted: bool  # the cycle ended on work_budget
    risk_asked: bool  # the source was asked, up front or after a failure
    risk_requested: bool  # it was asked because the cheapest path had failed
    risk_used: bool  # a map was priced, given or from the source
    risk_refused: bool  # the source had none to give, or a bad one
    evaluations_before_risk: int  # made before the source was asked
    rejects: dict[str, int]  # by reason name
    stage_s: dict[str, float]

class EnavPlanner:
    def __init__(self, config: EnavConfig, checker: Checker) -> None: ...
    def reset(self) -> None: ...
    def plan(
        self,
        grid: Grid,
        pose: tuple[float, float, float],
        goal: tuple[float, float],
        goal_tolerance_m: float = 1.0,
        risk: F32 | None = None,  # (bins, ny, nx)
        risk_resolution_m: float = 0.0,
        risk_origin_m: tuple[float, float] = (0.0, 0.0),
        keep_out: NDArray[np.uint8] | None = None,  # (ny, nx), nonzero = forbidden
        ace_budget: int = -1,
        standing_curvature_per_m: float = 0.0,  # how the wheels stand; inf: turning in place
        risk_source: Callable[[], tuple[F32, float, tuple[float, float]] | None] | None = None,
        cost_grid: Grid | None = None,  # of the grid's frame
        work_budget: int = -1,
    ) -> PlanResult:
        """One cycle. `risk_source` is asked for a risk map when the `risk_policy` says so.

        It gives (p, resolution_m, origin_m), is asked at most once a cycle, and not where `risk` is
        given or `max_risk_cells` is 0. None, or a map the planner cannot use: the cycle goes on
        without. So it does when the source raises; the exception is raised again when the cycle is
        over. While a planner plans, no other call of it is answered.

        At most `ace_budget` poses are checked and `work_budget` poses looked at in the search;
        negative: unlimited.

        Costs are those of `cost_grid`, whose heights may be guesses. The checker sees `grid` alone.
        """
    @property
    def memory_bytes(self) -> int: ...
    @property
    def config(self) -> EnavConfig:
        """A copy of what it is set to."""
    @property
    def tree(self) -> dict[str, int]:
        """paths, arc_poses, turn_poses, poses_per_arc, turns, curvatures."""
    # The last cycle, for pictures.
    def path_costs(self) -> F32:
        """(paths,) cost of every candidate, +inf where it was not ranked."""
    def path_poses(self, path_index: int) -> F64:
        """(n, 3) poses of a candidate, the start first."""
    def path_verdicts(self) -> NDArray[np.uint8]:
        """(paths,) 0 not tried, 1 passed, 2 failed, 3 not ranked (infinite cost)."""
    def costmap(self) -> dict[str, object]:
        """As `costmap`, with cost_to_go and cost_with_memory_per_m beside it."""
