"""The Terrain type: frame, lookup, crops and refusals."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.terrain import Terrain, TerrainError


def asymmetric(**changes: object) -> Terrain:
    """5 rows x 9 columns with every cell its own height: 10 * iy + ix."""
    z = 10.0 * np.arange(5)[:, None] + np.arange(9)[None, :]
    given: dict[str, object] = {"resolution_m": 0.5, "origin_m": (-3.0, 7.0), "name": "asymmetric"}
    return Terrain(z, **(given | changes))  # type: ignore[arg-type]


def test_heights_are_an_immutable_float32_copy() -> None:
    source = np.arange(12, dtype=np.float64).reshape(3, 4).T  # not C-contiguous
    terrain = Terrain(source, 1.0)  # type: ignore[arg-type]
    source[0, 0] = 99.0
    assert terrain.z.dtype == np.float32
    assert terrain.z.flags.c_contiguous
    assert terrain.z[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        terrain.z[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        terrain.name = "other"  # type: ignore[misc]


def test_frame_of_an_asymmetric_map() -> None:
    terrain = asymmetric()
    assert terrain.shape == (5, 9)
    assert terrain.extent_m == (-3.25, 1.25, 6.75, 9.25)
    assert terrain.cell(-3.0, 7.0) == (0, 0)
    assert terrain.cell(1.0, 9.0) == (4, 8)
    assert terrain.z[terrain.cell(-2.0, 8.5)] == 32.0  # ix 2 to the east, iy 3 to the north


def test_extent_is_half_open() -> None:
    terrain = asymmetric()
    x_min, x_max, y_min, y_max = terrain.extent_m
    assert terrain.contains(x_min, y_min)
    assert terrain.cell(x_min, y_min) == (0, 0)
    assert terrain.cell(x_min + 0.5, y_min) == (0, 1)  # a shared edge belongs to the next cell
    for x, y in ((x_max, y_min), (x_min, y_max), (math.nextafter(x_min, -9), y_min)):
        assert not terrain.contains(x, y)
        with pytest.raises(TerrainError, match="outside the map"):
            terrain.cell(x, y)
    for value in (math.nan, math.inf, -math.inf, 1e300):
        assert not terrain.contains(value, 8.0)


@given(
    x=st.floats(-4, 2), y=st.floats(6, 10), resolution=st.floats(0.01, 3), origin=st.floats(-9, 9)
)
def test_cell_and_contains_agree(x: float, y: float, resolution: float, origin: float) -> None:
    terrain = asymmetric(resolution_m=resolution, origin_m=(origin, -origin))
    u, v = (x - origin) / resolution, (y + origin) / resolution
    if -0.499 < u < 8.499 and -0.499 < v < 4.499:
        assert terrain.contains(x, y)
    if terrain.contains(x, y):
        iy, ix = terrain.cell(x, y)
        assert 0 <= iy < 5
        assert 0 <= ix < 9
        assert abs(origin + ix * resolution - x) <= 0.5 * resolution + 1e-9
        assert abs(-origin + iy * resolution - y) <= 0.5 * resolution + 1e-9


@given(x=st.floats(-3, 1), y=st.floats(7, 9))
def test_bilinear_height_is_exact_on_a_plane(x: float, y: float) -> None:
    expected = 10.0 * (y - 7.0) / 0.5 + (x + 3.0) / 0.5
    assert asymmetric().height(x, y) == pytest.approx(expected, abs=1e-9)


def test_height_in_the_outer_half_cell_outside_and_in_arrays() -> None:
    terrain = asymmetric()
    assert terrain.height(-3.25, 6.75) == 0.0
    assert terrain.height(1.2, 9.2) == 48.0
    assert math.isnan(terrain.height(1.25, 7.0))
    assert math.isnan(terrain.height(math.nan, 7.0))
    xs, ys = np.array([-3.0, -2.5, 5.0]), np.array([[7.0], [7.5]])
    heights = terrain.height(xs, ys)
    np.testing.assert_array_equal(heights, [[0, 1, np.nan], [10, 11, np.nan]])
    np.testing.assert_array_equal(terrain.contains(xs, ys), [[True, True, False]] * 2)


def test_unknown_cells_spread_only_where_they_have_weight() -> None:
    z = np.array(asymmetric().z)
    z[2, 4] = np.nan
    terrain = asymmetric().with_heights(z)
    hole_x, hole_y = -3.0 + 4 * 0.5, 7.0 + 2 * 0.5
    assert math.isnan(terrain.height(hole_x, hole_y))
    assert math.isnan(terrain.height(hole_x + 0.49, hole_y - 0.49))
    assert terrain.height(hole_x + 0.5, hole_y) == 25.0  # exactly on the neighbour
    assert terrain.height(hole_x + 0.5, hole_y + 0.1) == pytest.approx(27.0)


def test_maps_of_one_row_or_cell_have_heights() -> None:
    assert Terrain(np.array([[3.0]], np.float32), 1.0).height(0.4, -0.5) == 3.0
    assert Terrain(np.array([[3.0, 5.0]], np.float32), 1.0).height(0.5, 0.2) == 4.0


def test_crop_keeps_cells_whose_centre_is_inside() -> None:
    terrain = asymmetric(start_m=(-2.0, 8.0), goal_m=(1.0, 9.0), layers={"q": asymmetric().z})
    part = terrain.crop(-2.5, 0.0, 7.5, 9.0)  # the minima are centres: in; the maxima: out
    assert part.shape == (3, 5)
    assert part.origin_m == (-2.5, 7.5)
    assert part.start_m == (-2.0, 8.0)
    assert part.goal_m is None
    np.testing.assert_array_equal(part.z, terrain.z[1:4, 1:6])
    np.testing.assert_array_equal(part.layers["q"], part.z)
    assert part.height(-1.3, 8.2) == terrain.height(-1.3, 8.2)
    assert terrain.crop(-99, 99, -99, 99).sha256 == terrain.sha256


def test_crop_bounds_are_not_lost_to_rounding() -> None:
    terrain = Terrain(np.zeros((10, 10), np.float32), 0.1)
    assert terrain.crop(0.3, 0.7, 0.1 * 3, 0.1 * 7).shape == (4, 4)


def test_crop_refuses_nothing_and_nonsense() -> None:
    with pytest.raises(TerrainError, match="no cell"):
        asymmetric().crop(50, 60, 7, 9)
    with pytest.raises(TerrainError, match="no cell"):
        asymmetric().crop(0, -1, 7, 9)
    with pytest.raises(TerrainError, match="finite"):
        asymmetric().crop(math.nan, 1, 7, 9)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2"])
def test_masked_cells_are_unknown(kind: str) -> None:
    # A hole with data 0 was safe ground, level with what is around it.
    heights = np.ma.array(np.zeros((3, 4), kind), mask=np.zeros((3, 4), bool))
    heights[1, 2] = np.ma.masked
    layer = np.ma.masked_greater(np.arange(12.0).reshape(3, 4), 10.0)
    terrain = Terrain(heights, 0.1, layers={"spacing": layer})
    hole = np.zeros((3, 4), bool)
    hole[1, 2] = True
    np.testing.assert_array_equal(np.isnan(terrain.z), hole)
    assert np.isnan(terrain.layers["spacing"][2, 3])
    assert np.isnan(terrain.height(0.2, 0.1))
    again = Terrain(np.zeros((3, 4)), 0.1).with_heights(heights)
    np.testing.assert_array_equal(np.isnan(again.z), hole)


def test_masked_points_are_nowhere() -> None:
    terrain = Terrain(np.ones((3, 4)), 0.1)
    x = np.ma.array([0.1, 0.1], mask=[False, True])
    y = np.array([0.1, 0.1])
    assert terrain.contains(x, y).tolist() == [True, False]
    np.testing.assert_array_equal(terrain.height(x, y), [1.0, np.nan])


def test_with_heights_refuses_another_shape() -> None:
    with pytest.raises(TerrainError, match=r"\(9, 5\)"):
        asymmetric().with_heights(asymmetric().z.T)


def test_digest_follows_content_only() -> None:
    base = asymmetric()
    assert base.sha256 == asymmetric(name="other", attribution="x").sha256
    raised = np.array(base.z)
    raised[4, 8] += 0.001
    others = [
        base.with_heights(raised),
        asymmetric(resolution_m=0.25),
        asymmetric(origin_m=(-3.0, 7.5)),
        asymmetric(datum=(0.0, 0.0, 1.0)),
        Terrain(base.z.T, 0.5, (-3.0, 7.0)),
    ]
    assert len({base.sha256, *(t.sha256 for t in others)}) == 6
    assert len(base.sha256) == hashlib.sha256().digest_size * 2


def test_digest_knows_one_nan() -> None:
    quiet = np.array([[np.nan, 1.0]], np.float32)
    payload = quiet.copy()
    payload.view(np.uint32)[0, 0] = 0xFFC01234
    assert Terrain(quiet, 1.0).sha256 == Terrain(payload, 1.0).sha256


def test_pickling_keeps_arrays_read_only() -> None:
    terrain = asymmetric(layers={"q": asymmetric().z}, start_m=(-3.0, 7.0))
    copy = pickle.loads(pickle.dumps(terrain))
    assert copy.sha256 == terrain.sha256
    assert copy.start_m == terrain.start_m
    assert not copy.z.flags.writeable
    assert not copy.layers["q"].flags.writeable


@pytest.mark.parametrize(
    ("z", "fault"),
    [
        (np.zeros((0, 4)), "empty"),
        (np.zeros(4), "2-D"),
        (np.zeros((2, 2, 1)), "2-D"),
        (np.array([[0.0, np.inf]]), "infinite"),
        (np.array([[0.0, -np.inf]]), "infinite"),
        (np.full((2, 2), np.nan), "every height is unknown"),
        (np.array([[0.0, 1.1e5]]), "beyond"),
        (np.array([[0.0, -3.4e38]]), "beyond"),
        (np.array([[0.0, 1e300]]), "beyond"),
        (np.zeros((2, 2), complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
    ],
)
def test_faulty_heights_are_named(z: np.ndarray, fault: str) -> None:
    with pytest.raises(TerrainError, match=fault):
        Terrain(z, 1.0)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"resolution_m": 0.0}, "resolution"),
        ({"resolution_m": -1.0}, "resolution"),
        ({"resolution_m": math.nan}, "resolution"),
        ({"resolution_m": math.inf}, "resolution"),
        ({"origin_m": (0.0, math.inf)}, "origin_m"),
        ({"origin_m": (0.0,)}, "origin_m"),
        ({"datum": (0.0, math.nan, 0.0)}, "datum"),
        ({"start_m": (50.0, 8.0)}, "start_m"),
        ({"goal_m": (math.nan, 8.0)}, "goal_m"),
        ({"layers": {"q": np.zeros((9, 5))}}, "layer 'q'"),
    ],
)
def test_faulty_frames_are_named(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(TerrainError, match=fault):
        asymmetric(**changes)


def test_integer_heights_are_taken() -> None:
    z: Any = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert Terrain(z, 1.0).z[1, 2] == 5.0
