"""Fields of the core's structs, angles in degrees. Written by mlnav.config.generate."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mlnav.config.section import Section


class CostmapConfig(Section):
    """Fields of `_core.CostmapConfig`."""

    coarsening: Annotated[int, Field(ge=1, le=64)] = 4
    """Heightmap cells per costmap cell, each way."""
    patch_half_width_m: Annotated[float, Field(ge=1e-06, le=1000.0)] = 1.0
    """Half width of the square that a plane is fitted to."""
    tilt_scale_deg: Annotated[float, Field(ge=5.72957795e-05, le=90.0)] = 20.0
    """Cost per metre = 1 + (tilt / tilt_scale)^2 + roughness / roughness_scale."""
    roughness_scale_m: Annotated[float, Field(ge=1e-06, le=1000000.0)] = 0.08
    tilt_limit_deg: Annotated[float, Field(ge=5.72957795e-05, le=90.0)] = 30.0
    """Steeper patches cost infinity."""
    unknown_cost: Annotated[float, Field(ge=1.0, le=1000000.0)] = 1.4
    """Per metre over unseen cells."""


class SobelConfig(Section):
    """Fields of `_core.SobelConfig`."""

    kernel_half_width_m: Annotated[float, Field(ge=0.001, le=100.0)] = 1.2
    """Of the square over which squared gradients are averaged."""


class RoverGeometry(Section):
    """Fields of `_core.RoverGeometry`."""

    wheel_radius_m: Annotated[float, Field(ge=0.001, le=0.8)] = 0.263
    wheel_width_m: Annotated[float, Field(ge=0.001, le=1.6)] = 0.335
    front_x_m: Annotated[float, Field(ge=0.001, le=20.0)] = 1.185
    """Front axle; the middle one is at 0."""
    rear_x_m: Annotated[float, Field(ge=-20.0, le=-0.001)] = -1.075
    """Rear axle."""
    front_y_m: Annotated[float, Field(ge=0.001, le=20.0)] = 1.0625
    """Half track."""
    middle_y_m: Annotated[float, Field(ge=0.001, le=20.0)] = 1.1845
    """Half track."""
    rear_y_m: Annotated[float, Field(ge=0.001, le=20.0)] = 1.0625
    """Half track."""
    rocker_pivot_x_m: float = 0.304
    """Where the rocker turns on the body: the differential pivot."""
    rocker_pivot_z_m: Annotated[float, Field(le=20.0)] = 0.893
    bogie_pivot_x_m: Annotated[float, Field(le=0.0)] = -0.45
    """Where the bogie turns on the rocker."""
    bogie_pivot_z_m: Annotated[float, Field(le=20.0)] = 0.663
    pan_front_x_m: Annotated[float, Field(ge=-20.0, le=20.0)] = 0.9
    """Belly pan: a rectangle at constant height in the body frame."""
    pan_rear_x_m: Annotated[float, Field(ge=-20.0)] = -1.18
    pan_half_width_m: Annotated[float, Field(ge=0.001, le=20.0)] = 0.775
    pan_height_m: Annotated[float, Field(ge=0.001, le=20.0)] = 0.6


class Tube(Section):
    """Fields of `_core.Tube`."""

    along_m: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    across_m: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    heading_deg: Annotated[float, Field(ge=0.0, le=30.0)] = 0.0


class SafetyLimits(Section):
    """Fields of `_core.SafetyLimits`."""

    clearance_min_m: Annotated[float, Field(ge=0.0, le=20.0)]
    """Least height of the belly pan above ground."""
    tilt_max_deg: Annotated[float, Field(ge=0.0572957795, le=44.999)]
    """Body z axis against the vertical."""
    bogie_max_deg: Annotated[float, Field(ge=0.0572957795, le=44.999)]
    """Bogie angle relative to its rocker, either way."""
    differential_max_deg: Annotated[float, Field(ge=0.0572957795, le=44.999)]
    """Rocker angle relative to the body, either way."""
    wheel_drop_max_m: Annotated[float, Field(ge=0.001, le=20.0)]
    """Height span of the ground in a wheel's box: what `fixed_box` looks at."""
    relief_max_m: Annotated[float, Field(ge=0.001)] | None = None
    """Height span of the ground under a settled wheel's footprint. null: no limit."""

    presets: ClassVar[dict[str, dict[str, float | None]]] = {
        "enav_like": {
            "clearance_min_m": 0.06, "tilt_max_deg": 30.0, "bogie_max_deg": 25.0,
            "differential_max_deg": 12.0, "wheel_drop_max_m": 0.22, "relief_max_m": None,
        },
        "flight_like": {
            "clearance_min_m": 0.2, "tilt_max_deg": 25.0, "bogie_max_deg": 17.0,
            "differential_max_deg": 7.0, "wheel_drop_max_m": 0.3, "relief_max_m": 0.3,
        },
    }  # fmt: skip


class FixedBoxConfig(Section):
    """Fields of `_core.FixedBoxConfig`."""

    half_length_m: Annotated[float, Field(ge=0.001, le=1.0)] = 0.2
    """Of a wheel's box, along the rover."""
    half_width_m: Annotated[float, Field(ge=0.001, le=1.0)] = 0.2
    """Across."""


class ProbabilisticConfig(Section):
    """Fields of `_core.ProbabilisticConfig`."""

    sigma_fraction: Annotated[float, Field(ge=0.13, le=0.2)] = 0.17
    """Standard deviation of a state, of its interval's width; published: 0.13 to 0.20."""
    risk_max: Annotated[float, Field(ge=0.0, le=1.0)] = 0.05
    """Probability of exceeding any limit that a pose may have."""


class VerifiedConfig(Section):
    """Fields of `_core.VerifiedConfig`."""

    enclosed_m: Annotated[float, Field(ge=1e-08, le=0.1)] = 0.001
    """Half-width of the first enclosure, in wheel height."""
    max_tries: Annotated[int, Field(ge=1, le=100)] = 8
    """Boxes tried at a pose before `not_certified`."""
    first_length_m: Annotated[float, Field(ge=0.01, le=2.0)] = 0.1
    """Of the stretches that a sweep is proven in; halved where there is no proof."""
    shortest_m: Annotated[float, Field(ge=0.0001, le=0.1)] = 0.0006
    """No stretch is halved to less."""
    max_boxes: Annotated[int, Field(ge=1, le=100000)] = 96
    """Boxes tried along a sweep before `not_certified`."""
    joint_m: Annotated[float, Field(ge=1e-06, le=0.1)] = 0.005
    """Wheel heights about the settled ones that a sweep must start with and end within."""


class RiskPricing(Section):
    """Fields of `_core.RiskPricing`."""

    weight_per_m: Annotated[float, Field(ge=0.0, le=1000000.0)] = 5.0
    """Path cost per metre = weight x -log(1 - risk), of a risk of at most 0.99."""
    to_go_fraction: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.1
    """Of that weight, in the cost-to-go (mean over headings)."""
    fail_price: Annotated[float, Field(ge=0.0, le=1000.0)] = 2.0
    """Added to -log(1 - risk) around a pose that failed, in this cycle and later ones."""


class RiskPolicy(Section):
    """Fields of `_core.RiskPolicy`."""

    policy: Literal["always", "on_failure"] = "on_failure"
    """When the risk map is made: always up front, or on_failure of the cheapest path."""
    persist_cycles: Annotated[int, Field(ge=0, le=1000000)] = 3
    """With on_failure: after a cycle that needed the map, so many have it from the start. Hard
    ground comes in stretches."""


class PathTreeConfig(Section):
    """Fields of `_core.PathTreeConfig`."""

    turn_deg: Annotated[
        list[Annotated[float, Field(ge=-180.0, le=180.0)]], Field(min_length=1, max_length=64)
    ] = [
        0.0, 10.0, -10.0, 20.0, -20.0, 40.0, -40.0, 70.0, -70.0, 100.0, -100.0, 130.0, -130.0,
        160.0,
    ]  # fmt: skip
    """Turns in place at the start of a path."""
    curvature_per_m: Annotated[
        list[Annotated[float, Field(ge=-2.0, le=2.0)]], Field(min_length=1, max_length=64)
    ] = [
        0.0, 0.06666666666666667, -0.06666666666666667, 0.13333333333333333, -0.13333333333333333,
        0.2, -0.2, 0.26666666666666666, -0.26666666666666666, 0.3333333333333333,
        -0.3333333333333333,
    ]  # fmt: skip
    """Of the arcs; left positive."""
    arc_length_m: Annotated[float, Field(ge=0.01, le=50.0)] = 3.0
    ace_step_m: Annotated[float, Field(ge=0.01, le=1.0)] = 0.25
    """Length of the stretches of an arc that are checked one by one; divides arc_length_m."""
    turn_step_deg: Annotated[float, Field(ge=1.0, le=45.0)] = 10.0
    """Largest angle of a turn in place that is checked in one."""


class EnavConfig(Section):
    """Fields of `_core.EnavConfig`."""

    turn_cost: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    """Of any turn in place, in metres of flat driving."""
    turn_cost_per_rad: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.6
    """And per radian."""
    commit_length_m: Annotated[float, Field(ge=0.01, le=50.0)] = 1.0
    """Arc that is driven before planning again; a multiple of the step between checked poses."""
    commit_turn_deg: Annotated[float, Field(ge=1.0, le=180.0)] = 30.0
    """Turn that is driven before planning again."""
    short_paths: bool = True
    """When no whole path passes, drive the best start of one that did."""
    riskiest_first: bool = True
    """Check a path's poses from the riskiest on where there is a risk map; else from the start."""
    prove_beyond_commitment: bool = True
    """Put whole stretches of motion through the checker beyond the commitment too, not poses."""
    overthink_evaluations: Annotated[int, Field(ge=1, le=1000000000000000)] = 275
    """A cycle with more ACE evaluations than this is an overthink."""
    memory_poses: Annotated[int, Field(ge=0, le=100000)] = 256
    """Starts of cycles that are remembered; 0 switches memory off."""
    visit_cost_per_m: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.5
    """Per remembered start of a cycle."""
    visit_radius_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.8
    """Around each of them."""
    flip_cost: Annotated[float, Field(ge=0.0, le=1000.0)] = 2.0
    """Of turning against the turn committed just before."""
    memory_failures: Annotated[int, Field(ge=0, le=100000)] = 1024
    """Failed poses that are remembered, to price those around them; 0: none."""
