import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.sim.rolling_map import RollingMap


def points(rng: np.random.Generator, n: int, x0: float, y0: float, size: float) -> np.ndarray:
    return np.stack([x0 + size * rng.random(n), y0 + size * rng.random(n), rng.normal(0.0, 3.0, n)])


@pytest.mark.parametrize("anchor", [(0.0, 0.0), (-7.3, 12.25), (500_000.05, 4_100_000.05)])
@pytest.mark.parametrize("resolution", [0.1, 0.07, 1 / 3])
def test_heights_are_means_of_points(anchor, resolution) -> None:
    rng = np.random.default_rng(1)
    grid = RollingMap(resolution, anchor, (9, 5))
    grid.move((-3, 2))
    x0, y0 = anchor[0] + 1.2 * resolution, anchor[1] - 3.9 * resolution
    batches = [points(rng, 400, x0, y0, 6.0 * resolution) for _ in range(3)]
    for batch in batches:
        grid.add(*batch)
    assert grid.origin_m == pytest.approx((anchor[0] + 2 * resolution, anchor[1] - 3 * resolution))
    x, y, z = np.concatenate(batches, axis=1)
    heights = grid.heights()
    assert heights.dtype == np.float32
    for iy in range(9):
        for ix in range(5):
            cx, cy = anchor[0] + (ix + 2) * resolution, anchor[1] + (iy - 3) * resolution
            near = (np.abs(x - cx) < resolution / 2) & (np.abs(y - cy) < resolution / 2)
            if near.any():
                assert heights[iy, ix] == pytest.approx(z[near].mean(), rel=1e-6, abs=1e-7)
            else:
                assert np.isnan(heights[iy, ix])
    assert np.isnan(heights).any()  # the points end within the window
    assert not np.isnan(heights).all()


def test_cells_are_half_open() -> None:
    grid = RollingMap(0.5, (10.0, -3.0), (2, 3))
    assert grid.cell(9.75, -3.25) == (0, 0)
    assert grid.cell(10.249, -2.751) == (0, 0)
    assert grid.cell(10.25, -2.75) == (1, 1)
    assert grid.cell(9.7499, -3.2501) == (-1, -1)
    grid.add(np.array([9.75, 10.25]), np.array([-3.25, -2.75]), np.array([1.0, 2.0]))
    expected = np.full((2, 3), np.nan)
    expected[0, 0], expected[1, 1] = 1.0, 2.0
    np.testing.assert_array_equal(grid.heights(), expected)


def test_points_beyond_the_window_are_ignored() -> None:
    grid = RollingMap(1.0, (0.0, 0.0), (3, 4))
    x, y = np.meshgrid(np.arange(-6.0, 9.0), np.arange(-6.0, 9.0))
    grid.add(x.ravel(), y.ravel(), 10.0 * y.ravel() + x.ravel())
    iy, ix = np.mgrid[:3, :4]
    np.testing.assert_array_equal(grid.heights(), 10.0 * iy + ix)
    grid.add(np.array([1e12]), np.array([0.0]), np.array([7.0]))
    np.testing.assert_array_equal(grid.heights(), 10.0 * iy + ix)


shifts = st.tuples(st.integers(-12, 12), st.integers(-12, 12))


@given(way=st.lists(shifts, min_size=1, max_size=6), seed=st.integers(0, 5))
def test_what_stays_in_the_window_stays_as_it_is(way, seed) -> None:
    shape = (7, 10)
    grid = RollingMap(0.1, (300.05, -20.0), shape)
    rng = np.random.default_rng(seed)
    x = 300.05 + 0.1 * rng.integers(0, 10, 60)
    grid.add(x, -20.0 + 0.1 * rng.integers(0, 7, 60), rng.normal(size=60))
    expected, first = grid.heights(), (0, 0)
    for step in [*way, None]:
        target = (0, 0) if step is None else step
        iy, ix = np.mgrid[: shape[0], : shape[1]]
        from_y, from_x = iy + target[0] - first[0], ix + target[1] - first[1]
        inside = (from_y >= 0) & (from_y < shape[0]) & (from_x >= 0) & (from_x < shape[1])
        moved = np.full(shape, np.nan, np.float32)
        moved[inside] = expected[from_y[inside], from_x[inside]]
        grid.move(target)
        np.testing.assert_array_equal(grid.heights(), moved)
        expected, first = moved, target


def test_means_go_on_where_the_window_was_away() -> None:
    grid = RollingMap(1.0, (0.0, 0.0), (4, 4))
    one = np.ones(1)
    grid.add(2 * one, 2 * one, 1 * one)
    grid.move((1, 1))
    grid.add(2 * one, 2 * one, 2 * one)
    grid.move((0, 0))
    grid.add(2 * one, 2 * one, 6 * one)
    assert grid.heights()[2, 2] == 3.0
    grid.move((50, 0))
    grid.move((0, 0))
    assert np.isnan(grid.heights()).all()
