import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.config import Config
from mlnav.nav import zone_mask
from mlnav.sim import SimError, TruthSensor, default_endpoints
from mlnav.terrain import Terrain, TerrainError


def numbered(nx: int = 90, ny: int = 50, resolution_m: float = 0.5) -> Terrain:
    """Heights that tell which cell they are of."""
    iy, ix = np.mgrid[:ny, :nx]
    return Terrain(iy * 100.0 + ix, resolution_m, (-7.25, 3.5), name="numbered")


@given(
    x=st.floats(-7.4, 37.0),
    y=st.floats(3.3, 27.9),
    half=st.floats(0.4, 30.0),
    align=st.integers(1, 7),
)
def test_windows_are_cut_on_whole_cells(x, y, half, align) -> None:
    terrain = numbered()
    sensor = TruthSensor(terrain, half, align_cells=align)
    seen = sensor.window((x, y, 0.3))
    ny, nx = seen.shape
    assert ny * nx <= sensor.max_cells
    ix0 = round((seen.origin_m[0] - terrain.origin_m[0]) / 0.5)
    iy0 = round((seen.origin_m[1] - terrain.origin_m[1]) / 0.5)
    assert ix0 % align == 0
    assert iy0 % align == 0
    np.testing.assert_array_equal(seen.z, terrain.z[iy0 : iy0 + ny, ix0 : ix0 + nx])
    # The window reaches half a width each way, or to the border of the terrain.
    iy, ix = terrain.cell(x, y)
    reach = max(1, round(half / 0.5))
    assert ix0 <= max(ix - reach, 0)
    assert ix0 + nx >= min(ix + reach + 1, 90)
    assert iy0 <= max(iy - reach, 0)
    assert iy0 + ny >= min(iy + reach + 1, 50)


def test_a_window_off_the_map_is_refused() -> None:
    with pytest.raises(TerrainError):
        TruthSensor(numbered()).window((1e4, 0.0, 0.0))


def test_zones_are_cut_with_the_window() -> None:
    terrain = numbered()
    mask = zone_mask(terrain, [[(0.0, 10.0), (4.0, 10.0), (4.0, 12.0), (0.0, 12.0)]], [])
    seen = TruthSensor(terrain, 5.0, keep_out=mask).window((2.0, 11.0, 0.0))
    assert seen.keep_out is not None
    assert seen.keep_out.shape == seen.shape
    assert seen.keep_out.sum() == mask.sum()


@given(st.data())
def test_zones_are_conservative(data) -> None:
    terrain = numbered(40, 30)
    number = st.floats(-5.0, 15.0)
    x0, x1 = sorted((data.draw(number), data.draw(number)))
    y0, y1 = sorted((data.draw(number), data.draw(number)))
    x1, y1 = x1 + 0.01, y1 + 0.01
    box = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    x = terrain.origin_m[0] + 0.5 * np.arange(40)
    y = terrain.origin_m[1] + 0.5 * np.arange(30)
    eps = 0.02 * 0.5  # what overlaps by so little may go either way
    overlaps = np.outer(
        (y + 0.25 > y0 + eps) & (y - 0.25 < y1 - eps), (x + 0.25 > x0 + eps) & (x - 0.25 < x1 - eps)
    )
    inside = np.outer((y - 0.25 > y0) & (y + 0.25 < y1), (x - 0.25 > x0) & (x + 0.25 < x1))
    keep_out = zone_mask(terrain, [box], [])
    keep_in = zone_mask(terrain, [], [box])
    assert np.all(keep_out[overlaps] == 1)
    assert np.all(keep_in[~inside & ~touching(x, y, x0, x1, y0, y1, eps)] == 1)
    core = np.outer((y - 0.3 > y0) & (y + 0.3 < y1), (x - 0.3 > x0) & (x + 0.3 < x1))
    assert np.all(keep_in[core] == 0)


def touching(x, y, x0, x1, y0, y1, eps):
    """Cells whose border lies on the zone's border within eps."""
    near_x = (abs(x - 0.25 - x0) < eps) | (abs(x + 0.25 - x1) < eps)
    near_y = (abs(y - 0.25 - y0) < eps) | (abs(y + 0.25 - y1) < eps)
    return near_x[None, :] | near_y[:, None]


def test_no_zones_no_mask() -> None:
    assert zone_mask(numbered(), [], []) is None


# ---------------------------------------------------------------------------------------- endpoints


def test_default_endpoints_are_far_apart_and_repeatable() -> None:
    terrain = Terrain(np.zeros((300, 400)), 0.1, (5.0, -30.0), name="level")
    start, goal = default_endpoints(terrain, Config())
    assert np.hypot(start[0] - goal[0], start[1] - goal[1]) > 30.0
    assert default_endpoints(terrain, Config()) == (start, goal)


def test_default_endpoints_are_joined() -> None:
    z = np.zeros((300, 300))
    z[:, 190:200] = 3.0  # a wall: the left part is the larger one
    terrain = Terrain(z, 0.1, (0.0, 0.0), name="wall")
    start, goal = default_endpoints(terrain, Config())
    assert max(start[0], goal[0]) < 19.0


@pytest.mark.parametrize(
    "z", [np.zeros((10, 10)), np.random.default_rng(0).normal(0, 3, (200, 200))]
)
def test_without_safe_places_endpoints_must_be_given(z) -> None:
    with pytest.raises(SimError, match="--start"):
        default_endpoints(Terrain(z, 0.1, name="bad"), Config())
