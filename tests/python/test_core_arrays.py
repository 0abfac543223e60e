import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.core import (
    ArrayError,
    CoreError,
    HeightMap,
    as_float32,
    as_mask,
    reason_names,
)

HEIGHTS = np.arange(45, dtype=np.float64).reshape(5, 9) / 8  # exact in float32, not square


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


LAYOUTS = {
    "float32": HEIGHTS.astype(np.float32),
    "float64": HEIGHTS,
    "float16": HEIGHTS.astype(np.float16),
    "big-endian": HEIGHTS.astype(">f8"),
    "big-endian float32": HEIGHTS.astype(">f4"),
    "fortran": np.asfortranarray(HEIGHTS),
    "strided": np.repeat(np.repeat(HEIGHTS, 2, 0), 3, 1)[::2, ::3],
    "reversed": HEIGHTS[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": HEIGHTS.T.copy().T,
    "read-only": read_only(HEIGHTS.astype(np.float32)),
    "list": HEIGHTS.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_map(layout: str) -> None:
    given = LAYOUTS[layout]
    before = np.array(given)
    z = as_float32("z", given, 2)
    assert z.dtype == np.dtype("=f4")
    assert z.flags.c_contiguous
    assert z.dtype.isnative
    np.testing.assert_array_equal(z, HEIGHTS.astype(np.float32))
    grid = HeightMap(given, 0.5, (10.0, -3.0)).grid
    # between (ix 2, iy 1) and its neighbours: an asymmetric place, so that no axis can be swapped
    xy = np.array([[10.0 + 2.5 * 0.5, -3.0 + 1.0 * 0.5], [10.0 + 8 * 0.5, -3.0 + 4 * 0.5]])
    np.testing.assert_array_equal(
        grid.heights(xy), [(HEIGHTS[1, 2] + HEIGHTS[1, 3]) / 2, HEIGHTS[4, 8]]
    )
    np.testing.assert_array_equal(np.array(given), before)


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", ">i2", "u8"])
def test_integers_are_heights(kind: str) -> None:
    z = as_float32("z", np.array([[1, 2, 3]], kind), 2)
    assert z.tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("kind", ["f4", "i2"])
def test_masked_cells_are_unknown(kind: str) -> None:
    masked = np.ma.masked_equal(np.array([[1, -9999], [3, 4]], kind), -9999)
    z = as_float32("z", masked, 2)
    assert np.isnan(z[0, 1])
    assert z[1, 1] == 4.0


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.zeros(3), "dimension"),
        (np.zeros((2, 2, 2)), "dimension"),
        (np.float32(1.0), "dimension"),
        (np.zeros((2, 2), complex), "complex"),
        (np.zeros((2, 2), object), "object"),
        (np.zeros((2, 2), bool), "bool"),
        (np.array([["1", "2"]]), "<U1"),
        (np.zeros((2, 2), "M8[s]"), "datetime"),
        ([[1.0], [1.0, 2.0]], "rectangular"),
        (None, "object"),
    ],
)
def test_what_has_no_honest_conversion_is_refused(values, word: str) -> None:
    with pytest.raises(ArrayError, match="heights of mine") as fault:
        as_float32("heights of mine", values, 2)
    assert word in str(fault.value)


def test_too_large_for_float32_is_left_to_the_core() -> None:
    with pytest.raises(CoreError, match="height"):
        assert HeightMap([[1e300, 0.0]], 0.1, (0.0, 0.0)).grid


@pytest.mark.parametrize(
    ("z", "resolution_m", "origin_m"),
    [
        (np.zeros((0, 5)), 0.1, (0.0, 0.0)),
        (np.zeros((0, 0)), 0.1, (0.0, 0.0)),
        (np.full((3, 3), np.nan), 0.1, (0.0, 0.0)),
        (np.array([[0.0, np.inf]]), 0.1, (0.0, 0.0)),
        (np.array([[0.0, 2e5]]), 0.1, (0.0, 0.0)),
        (np.zeros((3, 3)), 0.0, (0.0, 0.0)),
        (np.zeros((3, 3)), -0.1, (0.0, 0.0)),
        (np.zeros((3, 3)), np.nan, (0.0, 0.0)),
        (np.zeros((3, 3)), 0.1, (np.nan, 0.0)),
        (np.zeros((3, 3)), 0.1, (0.0, 1e300)),
    ],
)
def test_bad_maps_are_named_by_the_core(z, resolution_m, origin_m) -> None:
    with pytest.raises(CoreError):
        assert HeightMap(z, resolution_m, origin_m).grid


def test_one_cell_is_a_map() -> None:
    assert HeightMap([[2.5]], 0.1, (0.0, 0.0)).grid.heights(np.array([[0.0, 0.0]])).tolist() == [
        2.5
    ]


def test_grid_keeps_its_heights_alive() -> None:
    grid = HeightMap(np.full((4, 4), 7.0), 0.1, (0.0, 0.0)).grid
    np.testing.assert_array_equal(grid.z, np.full((4, 4), 7.0))


def test_masked_rows_in_a_list_are_unknown() -> None:
    row = np.ma.masked_equal([1.0, 0.0], 0.0)
    np.testing.assert_array_equal(as_float32("z", [row, row], 2), [[1.0, np.nan]] * 2)


@pytest.mark.parametrize("kind", ["?", "u1", "f4"])
def test_masked_entries_of_a_zone_are_forbidden(kind: str) -> None:
    hidden = np.ma.array(np.zeros((1, 3), kind), mask=[[False, True, False]])
    assert as_mask("zone", hidden, (1, 3)).tolist() == [[0, 1, 0]]
    heights = HeightMap(np.zeros((1, 3)), 0.1, (0.0, 0.0), hidden)
    assert heights.keep_out is not None
    assert heights.keep_out.tolist() == [[0, 1, 0]]


def test_masks() -> None:
    mask = as_mask("zone", [[True, False, True]], (1, 3))
    assert mask.dtype == np.uint8
    assert mask.tolist() == [[1, 0, 1]]
    with pytest.raises(ArrayError, match="zone has shape"):
        as_mask("zone", np.zeros((3, 1)), (1, 3))
    with pytest.raises(ArrayError, match="zone"):
        as_mask("zone", [["a", "b", "c"]], (1, 3))


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_values_survive_any_view(ny: int, nx: int, data) -> None:
    base = np.arange(4 * ny * nx, dtype=np.float64).reshape(2 * ny, 2 * nx)
    rows = data.draw(st.sampled_from([slice(None, None, 2), slice(None, None, -2), slice(0, ny)]))
    view = data.draw(st.sampled_from([base[rows], base[rows].T, base[:, rows].T]))
    np.testing.assert_array_equal(as_float32("a", view, 2), view)


def test_reasons_have_names() -> None:
    assert reason_names(0) == []
    assert reason_names(0b1001) == ["tilt", "clearance"]
