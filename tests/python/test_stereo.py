import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mlnav.config import Config, ConfigError
from mlnav.core import CoreError
from mlnav.io.records import to_json
from mlnav.linkage import STATE, linkage
from mlnav.nav import zone_mask
from mlnav.sim import KinematicWorld, RoverState, SimulatedNavigator, at_rest, traverse
from mlnav.sim.sensor import make_sensor
from mlnav.sim.stereo import DECK_ABOVE_PAN_M, StereoSensor, _filled
from mlnav.terrain import Terrain, benchmark_class

EXACT = ("disparity_sigma_px=0", "dropout=0", "known_start_m=0", "fill_m=0")
"""Settings of a sensor that sees what is there and adds nothing."""


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(10.0, 0.07, seed=1)


def level(side_m: float = 36.0, resolution_m: float = 0.1, z_m: float = 0.0) -> Terrain:
    n = round(side_m / resolution_m)
    middle = side_m / 2
    return Terrain(
        np.full((n, n), z_m), resolution_m, (0.05, 0.05), name="level", start_m=(middle, middle)
    )


def stereo(terrain: Terrain, *changes: str, seed: int = 0, **parts) -> StereoSensor:
    config = Config().replaced([f"sensor.{c}" for c in ("name=stereo", *changes)], **parts)
    sensor = make_sensor(terrain, config, seed)
    assert isinstance(sensor, StereoSensor)
    return sensor


def standing(x=18.0, y=18.0, heading=0.0, *, roll=0.0, pitch=0.0, z=0.0) -> RoverState:
    """A rover in the air, or on level ground, with a body attitude of one's own."""
    state = {"roll_rad": roll, "pitch_rad": pitch, "origin_z_m": z}
    return RoverState((x, y, heading), state, (x, y, heading))


def poses(terrain: Terrain, n: int, seed: int = 0) -> list[RoverState]:
    """Settled rovers all over a terrain."""
    rng = np.random.default_rng(seed)
    x_min, x_max, y_min, y_max = terrain.extent_m
    found: list[RoverState] = []
    while len(found) < n:
        pose = (
            float(rng.uniform(x_min + 3, x_max - 3)),
            float(rng.uniform(y_min + 3, y_max - 3)),
            float(rng.uniform(-4, 4)),
        )
        where = at_rest(terrain, Config(), pose)
        if where.settled["roll_rad"] is not None:
            found.append(where)
    return found


def cameras(where: RoverState, mast_m=(0.80, -0.56, 1.98)) -> tuple[np.ndarray, Rotation]:
    """Place and body rotation in truth, by another library than the sensor's."""
    x, y, heading = where.true_pose
    state = where.settled
    body = Rotation.from_euler("ZXY", [heading, state["roll_rad"], -state["pitch_rad"]])
    return np.array([x, y, state["origin_z_m"]]) + body.apply(mast_m), body


def centres(seen) -> tuple[np.ndarray, np.ndarray]:
    (ny, nx), (x, y), res = seen.shape, seen.origin_m, seen.resolution_m
    return np.meshgrid(x + res * np.arange(nx), y + res * np.arange(ny))


# ------------------------------------------------------------------------------------------- points


def test_points_lie_on_the_ground(rocky: Terrain) -> None:
    sensor = stereo(rocky, *EXACT)
    for where in poses(rocky, 6):
        x, y, z = sensor.points(where)[:3]
        assert len(x) > 50_000
        np.testing.assert_allclose(z, rocky.height(x, y), atol=2e-5)


def test_ranges_are_from_the_cameras_place() -> None:
    # The mast stands on a corner of the belly pan, whose place the linkage knows.
    rover = Config().rover
    mast = (rover.pan_front_x_m, rover.pan_half_width_m, rover.pan_height_m)
    state = {"roll_rad": 0.2, "pitch_rad": -0.15, "origin_z_m": 1.2}
    where = RoverState((17.0, 19.0, 0.7), state, (17.0, 19.0, 0.7))
    corner = linkage(rover.to_core(), {name: state.get(name, 0.0) for name in STATE}).pan[0, 1]
    eye = np.array([17.0, 19.0, 0.0]) + Rotation.from_euler("z", 0.7).apply(corner)
    views = "azimuth_deg=[0, 90, 180, -90]"
    dense = ("resolution_m=0.02", "half_width_m=4", "range_min_m=3", "range_max_m=8")
    sensor = stereo(level(), *EXACT, *dense, f"mast_m={list(mast)}", views)
    sensor._shadows = []
    points = np.stack(sensor.points(where)[:3], axis=1) - eye
    ranges = np.linalg.norm(points, axis=1)
    assert ranges.min() >= 3.0 - 1e-5
    assert ranges.max() <= 8.0 + 1e-5
    sector = np.floor(np.arctan2(points[:, 1], points[:, 0]) / (np.pi / 4)).astype(int)
    for k in range(-4, 4):
        # They end at the limit all around: a place that is off by centimetres would show.
        assert ranges[sector == k].max() > 7.95


@pytest.mark.parametrize(("roll", "pitch"), [(0.0, 0.0), (0.25, -0.1), (-0.2, 0.2)])
@pytest.mark.parametrize("azimuth", [0.0, 70.0, -160.0])
def test_views_end_at_their_frames(roll: float, pitch: float, azimuth: float) -> None:
    where = standing(heading=0.4, roll=roll, pitch=pitch, z=2.0)
    sensor = stereo(
        level(80.0),
        *EXACT,
        f"azimuth_deg=[{azimuth}]",
        "elevation_deg=-40",
        "width_deg=50",
        "height_deg=36",
        "range_max_m=35",
        "pixel_deg=0.2",
        "mast_m=[0.8, -0.56, 40]",  # so high that the rover hides nothing of the frame
        "half_width_m=35",
    )
    where = replace(
        where, settled={**where.settled, "origin_z_m": -28.0}, true_pose=(40.0, 40.0, 0.4)
    )
    eye, body = cameras(where, (0.8, -0.56, 40.0))
    camera = body * Rotation.from_euler("ZY", [azimuth, 40.0], degrees=True)
    points = camera.inv().apply(
        np.stack(sensor.points(replace(where, estimated_pose=where.true_pose))[:3], 1) - eye
    )
    assert (points[:, 0] > 0.0).all()
    left = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
    up = np.degrees(np.arctan2(points[:, 2], points[:, 0]))
    assert np.abs(left).max() <= 25.0 + 1e-4
    assert np.abs(up).max() <= 18.0 + 1e-4
    # Points fill the frame to its four edges (the far one only where range allows).
    assert left.min() < -24.5
    assert left.max() > 24.5
    assert up.min() < -17.5


def test_the_rover_hides_the_ground_behind_it() -> None:
    rover, where = Config().rover, standing(heading=2.0, roll=0.1, pitch=-0.12, z=0.1)
    views = "azimuth_deg=[0, 60, -60, 150, -150]"
    sensor, through = (stereo(level(), *EXACT, views, "elevation_deg=-40") for _ in range(2))
    through._shadows = []
    eye, body = cameras(where)
    points = np.stack(through.points(where)[:3], axis=1)
    lines = body.inv().apply(points - eye)  # in the rover frame
    mast = np.array([0.80, -0.56, 1.98])

    def crosses(x_min, x_max, half_width, z):
        at = mast + lines * ((z - mast[2]) / lines[:, 2])[:, None]
        down = lines[:, 2] < 0.0
        return down & (at[:, 0] > x_min) & (at[:, 0] < x_max) & (np.abs(at[:, 1]) < half_width)

    deck = rover.pan_height_m + DECK_ABOVE_PAN_M
    r, across = rover.wheel_radius_m, rover.middle_y_m + rover.wheel_width_m / 2
    hidden = crosses(rover.pan_rear_x_m, rover.pan_front_x_m, rover.pan_half_width_m, deck)
    hidden |= crosses(rover.rear_x_m - r, rover.front_x_m + r, across, 2 * r)
    assert 1000 < hidden.sum() < len(hidden) - 1000
    np.testing.assert_array_equal(np.stack(sensor.points(where)[:3], axis=1), points[~hidden])
    # Nothing is seen under the rover, and something beside it and before it.
    seen = Rotation.from_euler("z", -2.0).apply(points[~hidden] - [18.0, 18.0, 0.0])
    under = (np.abs(seen[:, 1]) < across) & (seen[:, 0] > rover.rear_x_m - r)
    assert not (under & (seen[:, 0] < rover.front_x_m)).any()
    assert np.hypot(seen[:, 0], seen[:, 1]).min() < 2.2


def test_what_lies_behind_a_ridge_is_seen_from_its_other_side() -> None:
    terrain = level()
    z = np.zeros(terrain.shape)
    z[:, 210:213] = 1.2
    sensor = stereo(terrain.with_heights(z), *EXACT)
    behind = np.s_[20:300, 216:224]  # of the terrain
    before = sensor.sense(standing(17.0, 18.0, 0.0))

    def part(seen):
        x, y = (round((a - 0.05) / 0.1) for a in seen.origin_m)
        whole = np.full((700, 700), np.nan)
        ny, nx = seen.shape
        rows, columns = slice(max(y, 0), y + ny), slice(max(x, 0), x + nx)
        whole[rows, columns] = seen.z[max(-y, 0) :, max(-x, 0) :]
        return whole[behind]

    assert np.isnan(part(before)).all()
    front = before.z[:, : round((20.9 - before.origin_m[0]) / 0.1)]
    assert np.nansum(np.isfinite(front)) > 5000
    after = part(sensor.sense(standing(26.0, 18.0, math.pi)))
    assert np.isfinite(after).mean() > 0.4
    assert np.nanmax(np.abs(after)) < 1e-4


# -------------------------------------------------------------------------------------------- noise


def test_noise_is_along_the_ray_and_grows_with_the_range_squared() -> None:
    where = standing(heading=1.0)
    eye, _ = cameras(where)
    sensor = stereo(level(), "dropout=0", "disparity_sigma_px=0.5", "pixel_deg=0.1", seed=3)
    rays = np.stack(sensor.points(where)[:3], axis=1) - eye
    measured = np.linalg.norm(rays, axis=1)
    true = 1.98 * measured / -rays[:, 2]
    error = (measured - true) / true**2 / (0.5 * math.radians(0.1) / 0.424)
    for low, high in ((1.0, 3.0), (3.0, 6.0), (6.0, 9.0), (9.0, 11.9)):
        part = error[(true >= low) & (true < high)]
        assert len(part) > 3000
        assert np.mean(part) == pytest.approx(0.0, abs=5.0 / math.sqrt(len(part)))
        assert np.std(part) == pytest.approx(1.0, abs=5.0 / math.sqrt(2 * len(part)))


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_a_share_of_points_is_lost(share: float) -> None:
    whole = len(stereo(level(), *EXACT).points(standing())[0])
    kept = len(stereo(level(), *EXACT, f"dropout={share}").points(standing())[0])
    spread = math.sqrt(whole * share * (1.0 - share))
    assert whole - kept == pytest.approx(whole * share, abs=5.0 * spread)


def test_heights_are_right_within_noise() -> None:
    seen = stereo(level(z_m=-3.0)).sense(standing(z=-3.0))
    x, y = centres(seen)
    near = np.hypot(x - 18.0, y - 18.0) < 8.0
    known = near & np.isfinite(seen.z)
    assert known.sum() > 8000
    assert np.mean(seen.z[known]) == pytest.approx(-3.0, abs=1e-3)
    assert np.abs(seen.z[known] + 3.0).max() < 0.06
    assert np.abs(seen.z[known] + 3.0).mean() < 0.005


def test_a_seed_makes_the_bits(rocky: Terrain) -> None:
    wheres = poses(rocky, 1) * 2
    maps = [[stereo(rocky, seed=s).sense(w).z for w in wheres] for s in (4, 4, 5)]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert (maps[0][0] != maps[2][0]).any()
    sensor = stereo(rocky, seed=4)
    first, second = (sensor.sense(w).z for w in wheres)
    np.testing.assert_array_equal(first, maps[0][0])
    assert (first != second).any()  # every look has noise of its own


# ---------------------------------------------------------------------------------------- the frame


def test_points_are_put_where_the_rover_believes_to_be(rocky: Terrain) -> None:
    true = poses(rocky, 1, seed=2)[0]
    believed = (true.true_pose[0] + 1.3, true.true_pose[1] - 0.7, true.true_pose[2] + 0.2)
    lost = RoverState(true.true_pose, true.settled, believed, 0.45)
    x, y, z = stereo(rocky).points(true)[:3]
    c, s = math.cos(0.2), math.sin(0.2)
    dx, dy = x - true.true_pose[0], y - true.true_pose[1]
    expected = (believed[0] + c * dx - s * dy, believed[1] + s * dx + c * dy, z + 0.45)
    np.testing.assert_allclose(stereo(rocky).points(lost)[:3], expected, atol=1e-9)


def test_headings_may_be_far_round() -> None:
    turns = 2.0 * math.pi * 159_000
    near, far = (stereo(level()).points(standing(heading=h))[:3] for h in (0.5, 0.5 + turns))
    np.testing.assert_allclose(near, far, atol=1e-6)


def test_the_known_start_is_put_there_too(rocky: Terrain) -> None:
    true = poses(rocky, 1, seed=2)[0]
    believed = (true.true_pose[0] + 1.3, true.true_pose[1] - 0.7, true.true_pose[2] + 0.2)
    where = RoverState(true.true_pose, true.settled, believed, 0.45)
    seen = stereo(rocky, *EXACT, "known_start_m=2.5", "range_min_m=5.5").sense(where)
    x, y = centres(seen)
    dx, dy = x - believed[0], y - believed[1]
    start = np.hypot(dx, dy) < 2.5
    c, s = math.cos(-0.2), math.sin(-0.2)
    z = rocky.height(true.true_pose[0] + c * dx - s * dy, true.true_pose[1] + s * dx + c * dy)
    np.testing.assert_allclose(seen.z[start], z[start] + 0.45, atol=1e-5)
    assert np.isnan(seen.z[~start & (np.hypot(dx, dy) < 3.5)]).all()


def test_the_start_is_known_once() -> None:
    sensor = stereo(level(), *EXACT, "known_start_m=2.5", "half_width_m=8")
    sensor.sense(standing(8.0, 18.0))
    seen = sensor.sense(standing(26.0, 18.0))
    assert not np.isfinite(seen.z[np.hypot(*(a - 8.0 for a in centres(seen))) < 2.0]).any()
    x, y = centres(seen)
    assert np.isnan(seen.z[np.hypot(x - 26.0, y - 18.0) < 1.0]).all()


@given(x=st.floats(3.0, 33.0), y=st.floats(3.0, 33.0), half=st.floats(0.5, 20.0))
@settings(max_examples=25)
def test_windows_lie_on_the_planners_lattice(x: float, y: float, half: float) -> None:
    terrain = level()
    sensor = stereo(terrain, f"half_width_m={half}", "azimuth_deg=[0]")
    seen = sensor.sense(standing(x, y))
    assert seen.z.size == sensor.max_cells
    assert sensor.as_built()["sensor.half_width_m"] == pytest.approx(half, abs=0.051)
    for origin, base, at, n in zip(
        seen.origin_m, terrain.origin_m, (x, y), seen.shape[::-1], strict=True
    ):
        first = (origin - base) / 0.1
        assert first == pytest.approx(round(first), abs=1e-6)
        assert round(first) % 4 == 0
        assert n % 4 == 0
        cell = math.floor((at - base) / 0.1 + 0.5)
        reach = max(1, round(half / 0.1))
        assert round(first) <= cell - reach
        assert cell + reach < round(first) + n
        assert cell - reach - round(first) < 4


@pytest.mark.parametrize("resolution", [0.05, 0.1, 0.25])
def test_the_map_has_cells_of_its_own(resolution: float) -> None:
    terrain = Terrain(np.fromfunction(lambda iy, ix: 0.02 * ix, (200, 200)), 0.2, (0.0, 0.0))
    where = at_rest(terrain, Config(), (18.0, 18.0, 0.0))
    sensor = stereo(terrain, *EXACT, f"resolution_m={resolution}", "known_start_m=2")
    seen = sensor.sense(where)
    assert seen.resolution_m == resolution
    x, _ = centres(seen)
    known = np.isfinite(seen.z)
    assert known.sum() > 60.0 / resolution**2
    np.testing.assert_allclose(seen.z[known], 0.1 * x[known], atol=0.06 * resolution)


# ------------------------------------------------------------------------------------------ unknown


@pytest.mark.parametrize("setting", ["fill_m=0", "fill_m=0.4", "fill_m=2"])
def test_what_was_never_seen_is_unknown(rocky: Terrain, setting: str) -> None:
    """Nowhere is what was not seen known; holes are filled for costs alone."""
    sensor = stereo(rocky, setting, "half_width_m=9", seed=1)
    look, cells = sensor.points, set()

    def noted(where):
        points = look(where)
        x, y = points[:2]
        ix = np.floor((x - rocky.origin_m[0]) / 0.1 + 0.5).astype(int)
        iy = np.floor((y - rocky.origin_m[1]) / 0.1 + 0.5).astype(int)
        cells.update(zip(ix.tolist(), iy.tolist(), strict=True))
        return points

    sensor.points = noted
    start, filled = None, 0
    for where in poses(rocky, 5):
        start = start or where.true_pose
        seen = sensor.sense(where)
        x, y = centres(seen)
        known = np.isfinite(seen.z) & (np.hypot(x - start[0], y - start[1]) >= 2.5)
        first = [round((o - b) / 0.1) for o, b in zip(seen.origin_m, rocky.origin_m, strict=True)]
        iy, ix = np.nonzero(known)
        assert known.sum() > 3000
        here = set(zip((ix + first[0]).tolist(), (iy + first[1]).tolist(), strict=True))
        assert here <= cells
        filled += int((np.isfinite(seen.for_costs.z) & np.isnan(seen.z)).sum())
    assert (filled > 20) == (setting != "fill_m=0")


def test_unknown_ground_stays_unknown() -> None:
    terrain = level()
    z = np.zeros(terrain.shape)
    z[160:200, 210:240] = np.nan
    terrain = terrain.with_heights(z)
    sensor = stereo(terrain)
    for x, y, heading in ((17.0, 18.0, 0.0), (28.0, 18.0, math.pi), (22.0, 25.0, -1.6)):
        seen = sensor.sense(standing(x, y, heading))
    cx, cy = centres(seen)
    inner = (cx > 21.3) & (cx < 23.7) & (cy > 16.3) & (cy < 19.7)
    assert np.isnan(seen.z[inner]).mean() > 0.95  # noise may put a point a few cells in
    exact = stereo(terrain, *EXACT)
    exact.sense(standing(17.0, 18.0, 0.0))
    seen = exact.sense(standing(28.0, 18.0, math.pi))
    cx, cy = centres(seen)
    inner = (cx > 21.06) & (cx < 23.94) & (cy > 16.06) & (cy < 19.94)
    assert np.isnan(seen.z[inner]).all()


def test_beyond_the_terrain_nothing_is_known() -> None:
    seen = stereo(level(12.0), *EXACT, "known_start_m=3").sense(standing(2.0, 2.0, -2.0))
    x, y = centres(seen)
    on_it = (x > 0.0) & (x < 12.0) & (y > 0.0) & (y < 12.0)
    assert np.isnan(seen.z[~on_it]).all()
    assert np.isfinite(seen.z[on_it]).any()


@given(st.integers(0, 1000), st.integers(1, 2), st.floats(0.05, 0.6))
@settings(max_examples=40)
def test_holes_are_filled_where_no_larger_square_has_room(
    seed: int, reach: int, gaps: float
) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(17, 14)).astype(np.float32)
    z[rng.random(z.shape) < gaps] = np.nan
    z[rng.integers(0, 17) :, rng.integers(0, 14) :] = np.nan
    before = z.copy()
    out, side = _filled(z, reach), 2 * reach + 1
    np.testing.assert_array_equal(z, before)
    known = np.isfinite(z)
    np.testing.assert_array_equal(out[known], z[known])
    # The ground goes on unknown beyond the window: squares may lie across its border.
    wide = np.pad(known, side)
    room = np.zeros(wide.shape, bool)
    for iy in range(wide.shape[0] - side + 1):
        for ix in range(wide.shape[1] - side + 1):
            square = np.s_[iy : iy + side, ix : ix + side]
            if not wide[square].any():
                room[square] = True
    open_ground = room[side:-side, side:-side]
    for iy, ix in zip(*np.nonzero(~known), strict=True):
        around = z[max(iy - reach, 0) : iy + reach + 1, max(ix - reach, 0) : ix + reach + 1]
        if open_ground[iy, ix]:
            assert np.isnan(out[iy, ix])
        else:
            assert out[iy, ix] == pytest.approx(np.nanmean(around), rel=1e-5, abs=1e-6)


def test_shadows_of_small_rocks_are_filled() -> None:
    terrain = level()
    z = np.zeros(terrain.shape)
    z[176:179, 220:223] = 0.25
    terrain = terrain.with_heights(z)
    behind = [stereo(terrain, f"fill_m={fill}").sense(standing()) for fill in (0, 0.4)]
    x, y = centres(behind[0])
    shadow = (x > 22.4) & (x < 22.7) & (y > 17.68) & (y < 17.82)
    assert np.isnan(behind[0].z[shadow]).all()
    assert np.isfinite(behind[1].for_costs.z[shadow]).all()
    assert behind[0].guessed is None
    np.testing.assert_array_equal(behind[1].z, behind[0].z)


# ------------------------------------------------------------------------------------ zones, faults


def test_zones_are_carried() -> None:
    terrain = level()
    zone = [[20.0, 16.0], [24.0, 15.0], [23.0, 22.0]]
    within = [[1.0, 1.0], [60.0, 1.0], [60.0, 60.0], [1.0, 60.0]]
    config = Config().replaced(sensor="stereo", keep_out=[zone], keep_in=[within])
    simulated = SimulatedNavigator(terrain, config)
    seen = simulated.cycle(standing(26.0, 26.0), (30.0, 30.0)).local_map
    mask = zone_mask(terrain, [zone], [within])
    assert seen.keep_out is not None
    assert seen.keep_out.shape == seen.shape
    ix, iy = (round((o - 0.05) / 0.1) for o in seen.origin_m)
    ny, nx = 360 - iy, 360 - ix
    assert 0 < ny < seen.shape[0]
    np.testing.assert_array_equal(seen.keep_out[:ny, :nx], mask[iy:, ix:])
    assert not seen.keep_out[ny:, nx:].any()  # allowed ground reaches beyond the terrain
    assert stereo(terrain).sense(standing()).keep_out is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["range_max_m=0.4"], "sensor.*range_max_m"),
        (["mast_m=[0.8, 0.0, 0.0]"], "sensor.*mast_m"),
        (["azimuth_deg=[]"], "sensor.*azimuth_deg"),
        (["width_deg=180"], "sensor.*width_deg"),
        (["dropout=1"], "sensor.*dropout"),
        (["baseline_m=0"], "sensor.*baseline_m"),
        (["resolution_m=0"], "sensor.*resolution_m"),
        (["pixels=3"], "pixels.*pixel_deg"),
    ],
)
def test_bad_settings_are_named(changes: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stereo(level(), *changes)


def test_seeing_nothing_is_a_fault() -> None:
    looking_up = ("elevation_deg=30", "height_deg=20", "known_start_m=0")
    with pytest.raises(ConfigError, match=r"no ground is in view.*known_start_m"):
        stereo(level(), *looking_up).sense(standing())
    stereo(level(), *looking_up[:2]).sense(standing())


def test_cameras_in_the_ground_are_a_fault() -> None:
    with pytest.raises(CoreError, match="viewpoint below ground"):
        stereo(level(z_m=5.0)).sense(standing())


def test_a_rover_that_does_not_settle_looks_from_where_it_would_stand() -> None:
    ground = level(z_m=2.0)
    where = RoverState((18.0, 18.0, 0.3), {"roll_rad": None}, (18.0, 18.0, 0.3))
    settled = stereo(ground).sense(standing(18.0, 18.0, 0.3, z=2.0)).z
    np.testing.assert_array_equal(stereo(ground).sense(where).z, settled)


# ---------------------------------------------------------------------------------------- traverses

KEPT = [
    "limits.relief_max_m=0.25",
    "limits.bogie_max_deg=15",
    "limits.differential_max_deg=6",
    "limits.clearance_min_m=0.25",
    "limits.tilt_max_deg=23",
]
"""Means over cells are lower than rocks are: who plans on them keeps away from the limits."""


def test_a_rover_that_sees_drives(rocky: Terrain) -> None:
    config = Config().replaced(KEPT, sensor="stereo")
    world = KinematicWorld(rocky, Config().rover_model())
    result = traverse(rocky, config, seed=1, world=world)
    assert result.outcome == "goal_reached"
    assert result.summary()["sensor"] == "stereo"
    assert 0.9 * 35.0 < result.driven_m < 1.2 * 36.0


def test_a_run_that_sees_repeats_bit_for_bit(rocky: Terrain) -> None:
    config = Config().replaced(["traverse.max_cycles=5"], sensor="stereo", localization="visual")
    runs = [traverse(rocky, config, seed=3) for _ in range(2)]
    for a, b in zip(runs[0].cycles, runs[1].cycles, strict=True):
        record, other = a.as_dict(), b.as_dict()
        del record["timing_s"], other["timing_s"]
        assert to_json(record) == to_json(other)
    other = traverse(rocky, config, seed=4)
    assert [c.path_cost for c in other.cycles] != [c.path_cost for c in runs[0].cycles]


def test_the_error_of_a_height_is_bounded_by_the_noise_of_its_ranges() -> None:
    """On a slope, where the mean of a cell is the height at its centre."""
    z = 0.15 * np.arange(160)[None, :] * 0.1 * np.ones((160, 1))
    slope = Terrain(z.astype(np.float32), 0.1)
    where = standing(8.0, 8.0, z=0.15 * 8.0)
    noisy = ("disparity_sigma_px=2", "half_width_m=7", "known_start_m=1")
    assert stereo(slope, *noisy).sense(where).height_error_m is None
    off: list[float] = []
    for seed in range(4):
        seen = stereo(slope, *noisy, "error_sigmas=1", seed=seed).sense(where)
        x, _ = centres(seen)
        known = np.isfinite(seen.z)
        assert seen.height_error_m is not None
        assert (seen.height_error_m >= 0.0).all()
        noise = known & (seen.height_error_m > 0.01)  # more than where points lie in a cell
        off += list(np.abs(seen.z - 0.15 * x)[noise] / seen.height_error_m[noise])
    assert len(off) > 1000
    assert 0.65 < np.mean(np.array(off) < 1.0) < 0.85  # 68 % of a normal error, and noisy slopes
    assert np.mean(np.array(off) < 3.3) > 0.995
    by_hand = stereo(slope, *noisy, "height_error_m=0.02").sense(where)
    np.testing.assert_allclose(by_hand.height_error_m, 0.02)
