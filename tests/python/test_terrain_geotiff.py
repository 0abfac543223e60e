"""GeoTIFF in and out: orientation, units, holes and everything that must be refused."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rasterio import Affine
from rasterio.enums import ColorInterp

from mlnav.terrain import Terrain, TerrainError, geotiff, read_geotiff, write_geotiff

# The map all orientations must agree on: 5 rows (y) x 9 columns (x), each cell its own height.
HEIGHTS = (10.0 * np.arange(5)[:, None] + np.arange(9)[None, :]).astype(np.float32)
RES = 0.5
LEFT, BOTTOM = -3.25, 6.75  # corner of the map; centre of cell (0, 0) is (-3, 7)
RIGHT, TOP = LEFT + 9 * RES, BOTTOM + 5 * RES
NORTH_UP = Affine(RES, 0, LEFT, 0, -RES, TOP)


def write_raw(path: Path, raster: np.ndarray, transform: Affine = NORTH_UP, **options: Any) -> Path:
    """A GeoTIFF as other tools write them; ``raster`` is (rows, columns) or (bands, rows, columns).

    Options: band ``descriptions``, ``units``, ``scales``, ``offsets``, ``colorinterp``, ``mask``;
    the rest goes to rasterio.
    """
    bands = raster[None] if raster.ndim == 2 else raster
    after = {
        key: options.pop(key)
        for key in ("descriptions", "units", "scales", "offsets", "colorinterp")
        if key in options
    }
    mask = options.pop("mask", None)
    shape = {"count": bands.shape[0], "height": bands.shape[1], "width": bands.shape[2]}
    profile = shape | {"driver": "GTiff", "dtype": bands.dtype, "transform": transform} | options
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", **profile) as sink:
        for key, value in after.items():  # GDAL takes the alpha band only before the data
            setattr(sink, key, value)
        sink.write(bands)
        if mask is not None:
            sink.write_mask(mask)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "map.tif"


# ---------------------------------------------------------------------------------- orientation


@pytest.mark.parametrize(
    ("raster", "transform"),
    [
        pytest.param(HEIGHTS[::-1], NORTH_UP, id="north-up"),
        pytest.param(HEIGHTS, Affine(RES, 0, LEFT, 0, RES, BOTTOM), id="south-up"),
        pytest.param(HEIGHTS[::-1, ::-1], Affine(-RES, 0, RIGHT, 0, -RES, TOP), id="east-left"),
        pytest.param(HEIGHTS[:, ::-1], Affine(-RES, 0, RIGHT, 0, RES, BOTTOM), id="half-turn"),
        pytest.param(HEIGHTS.T, Affine(0, RES, LEFT, RES, 0, BOTTOM), id="transposed"),
        pytest.param(HEIGHTS.T[::-1], Affine(0, -RES, RIGHT, RES, 0, BOTTOM), id="quarter-left"),
        pytest.param(HEIGHTS[::-1].T, Affine(0, RES, LEFT, -RES, 0, TOP), id="quarter-right"),
        pytest.param(
            HEIGHTS[::-1, ::-1].T, Affine(0, -RES, RIGHT, -RES, 0, TOP), id="anti-transposed"
        ),
    ],
)
def test_every_right_angled_orientation_gives_the_same_map(
    file: Path, raster: np.ndarray, transform: Affine
) -> None:
    terrain = read_geotiff(write_raw(file, raster, transform))
    np.testing.assert_array_equal(terrain.z, HEIGHTS)
    assert terrain.origin_m == pytest.approx((-3.0, 7.0))
    assert terrain.resolution_m == RES
    assert terrain.datum == (0.0, 0.0, 0.0)
    assert terrain.name == "map"
    assert terrain.height(-2.0, 8.5) == 32.0


@pytest.mark.parametrize("degrees", [1.0, 30.0, 89.9, 181.0])
def test_other_rotations_are_refused(file: Path, degrees: float) -> None:
    c, s = RES * np.cos(np.radians(degrees)), RES * np.sin(np.radians(degrees))
    turned = Affine(c, s, LEFT, s, -c, TOP)
    with pytest.raises(TerrainError, match=r"map\.tif.*rotated by"):
        read_geotiff(write_raw(file, HEIGHTS, turned))


def test_pixel_is_point_and_area_give_the_same_centres(file: Path, tmp_path: Path) -> None:
    point = write_raw(tmp_path / "point.tif", HEIGHTS[::-1])
    with rasterio.open(point, "r+") as sink:
        sink.update_tags(AREA_OR_POINT="Point")
    area = write_raw(file, HEIGHTS[::-1])
    assert read_geotiff(point).origin_m == read_geotiff(area).origin_m == (-3.0, 7.0)


def test_file_without_geotransform_is_refused(file: Path) -> None:
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        write_raw(file, HEIGHTS, Affine.identity())
    with pytest.raises(TerrainError, match="not georeferenced"):
        read_geotiff(file)


# --------------------------------------------------------------------------------- units, datum


def test_feet_become_metres(file: Path) -> None:
    survey_foot = 1200 / 3937
    transform = Affine(RES, 0, 6.4e6, 0, -RES, 1.8e6)  # California zone 5, US survey feet
    path = write_raw(file, HEIGHTS[::-1], transform, crs="EPSG:2229", units=["ft"])
    terrain = read_geotiff(path)
    assert terrain.resolution_m == pytest.approx(RES * survey_foot, rel=1e-12)
    np.testing.assert_allclose(terrain.z, HEIGHTS * 0.3048, rtol=1e-6)
    x0 = terrain.origin_m[0] + terrain.datum[0]
    y0 = terrain.origin_m[1] + terrain.datum[1]
    assert x0 == pytest.approx((6.4e6 + 0.25) * survey_foot, abs=1e-6)
    assert y0 == pytest.approx((1.8e6 - 2.25) * survey_foot, abs=1e-6)


def test_local_systems_have_units_too(file: Path) -> None:
    axes = 'AXIS["Easting",EAST],AXIS["Northing",NORTH]'
    write_raw(file, HEIGHTS, crs=f'LOCAL_CS["site",UNIT["foot",0.3048],{axes}]', units=["ft"])
    assert read_geotiff(file).resolution_m == pytest.approx(RES * 0.3048)
    write_raw(file, HEIGHTS, crs=f'LOCAL_CS["site",UNIT["metre",1],{axes}]')
    assert read_geotiff(file).resolution_m == RES


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("m", 1), ("Metre", 1), ("km", 1000), ("cm", 0.01), ("ft", 0.3048), ("us-ft", 1200 / 3937)],
)
def test_declared_vertical_units(file: Path, unit: str, factor: float) -> None:
    terrain = read_geotiff(write_raw(file, HEIGHTS[::-1], units=[unit]))
    np.testing.assert_allclose(terrain.z + terrain.datum[2], HEIGHTS * factor, rtol=1e-6)


def test_unknown_and_ambiguous_units_are_refused(file: Path) -> None:
    with pytest.raises(TerrainError, match="unknown unit of height 'fathom'"):
        read_geotiff(write_raw(file, HEIGHTS, units=["fathom"]))
    write_raw(file, HEIGHTS, Affine(RES, 0, 6.4e6, 0, -RES, 1.8e6), crs="EPSG:2229")
    with pytest.raises(TerrainError, match="pass vertical_unit"):
        read_geotiff(file)
    assert np.nanmax(read_geotiff(file, vertical_unit="m").z) == 48.0


SITE = 'LOCAL_CS["site",UNIT["{}",{}],AXIS["Easting",EAST],AXIS["Northing",NORTH]]'
IN_METRES, IN_FEET = SITE.format("metre", 1), SITE.format("foot", 0.3048)


@pytest.mark.parametrize(
    ("crs", "unit", "of_crs"),
    [
        ("EPSG:2229", "m", "horizontal unit of the CRS is 'US survey foot'"),
        ("EPSG:32611", "ft", "horizontal unit of the CRS is 'metre'"),
        ("EPSG:32611+6360", "m", "vertical unit of the CRS is 'US survey foot'"),
        ("EPSG:2229+5703", "ft", "vertical unit of the CRS is 'metre'"),
        (IN_FEET, "metre", "horizontal unit of the CRS is 'foot'"),
        (IN_METRES, "cm", "horizontal unit of the CRS is 'metre'"),
    ],
)
def test_a_unit_that_contradicts_the_crs_is_refused(
    file: Path, crs: str, unit: str, of_crs: str
) -> None:
    write_raw(file, HEIGHTS, crs=crs, units=[unit])
    with pytest.raises(TerrainError, match=rf"map\.tif.*in '{unit}', but the {of_crs}.*-unit"):
        read_geotiff(file)
    # What is given settles it, either way.
    assert np.nanmax(read_geotiff(file, vertical_unit="m").z) == 48.0
    assert np.nanmax(read_geotiff(file, vertical_unit="ft").z) == pytest.approx(48.0 * 0.3048)


@pytest.mark.parametrize(
    ("crs", "unit", "factor"),
    [
        ("EPSG:32611+6360", None, 1200 / 3937),
        ("EPSG:2229+5703", None, 1.0),
        ("EPSG:2229+5703", "m", 1.0),
        ("EPSG:2229", "us-ft", 1200 / 3937),
        ("EPSG:2229", "ft", 0.3048),  # 2e-6 apart: the same unit for a map
        ("EPSG:32611", "Metre", 1.0),
    ],
)
def test_a_unit_that_agrees_with_the_crs_is_used(
    file: Path, crs: str, unit: str | None, factor: float
) -> None:
    write_raw(file, HEIGHTS[::-1], crs=crs, **({"units": [unit]} if unit else {}))
    np.testing.assert_allclose(read_geotiff(file).z, HEIGHTS * factor, rtol=1e-6)


@pytest.mark.parametrize("variable", ["PROJ_DATA", "PROJ_LIB"])
@pytest.mark.parametrize("crs", ["EPSG:2229", "EPSG:32611+6360"])
def test_a_crs_is_not_guessed_at_without_the_database_of_proj(
    file: Path, variable: str, crs: str
) -> None:
    # PROJ looks for it once a process. GDAL then says metre for feet, and forgets vertical units.
    write_raw(file, HEIGHTS, crs=crs)
    bare = {k: v for k, v in os.environ.items() if k not in ("PROJ_DATA", "PROJ_LIB")}
    code = f"import mlnav.terrain as t; t.read_geotiff({str(file)!r}, vertical_unit='m')"
    for environment, told in ((bare, ""), (bare | {variable: str(file.parent)}, variable)):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (ran.returncode != 0) == bool(told), ran.stderr
        if told:
            last = ran.stderr.splitlines()[-1]
            assert re.search(rf"map\.tif: its CRS cannot be resolved.*{told}={file.parent}", last)


def test_a_crs_of_unknown_code_is_refused(file: Path) -> None:
    # Without its entry in the database GDAL makes metres of what its name says is in feet.
    write_raw(file, HEIGHTS, crs="EPSG:2229")
    key = struct.pack("<4H", 3072, 0, 1, 2229)  # ProjectedCRSGeoKey
    content = file.read_bytes()
    assert content.count(key) == 1
    file.write_bytes(content.replace(key, struct.pack("<4H", 3072, 0, 1, 29999)))
    with pytest.raises(TerrainError, match=r"map\.tif: its CRS cannot be resolved.*29999"):
        read_geotiff(file, vertical_unit="m")


# ------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    "interpretation",
    [
        ["red", "green", "blue"],
        ["red", "green", "blue", "alpha"],
        ["palette"],
        ["Y", "Cb", "Cr"],
        ["undefined", "undefined", "undefined"],
        ["gray", "undefined", "undefined", "alpha"],
    ],
)
def test_pictures_are_no_heights(file: Path, interpretation: list[str]) -> None:
    raster = np.stack([HEIGHTS.astype(np.uint8)] * len(interpretation))
    meaning = [ColorInterp[name] for name in interpretation]
    write_raw(file, raster, colorinterp=meaning)
    with pytest.raises(TerrainError, match=r"map\.tif: .*picture, not heights"):
        read_geotiff(file)


def test_a_picture_of_16_bits_is_no_heights(file: Path) -> None:
    raster = np.stack([HEIGHTS.astype(np.uint16)] * 3)
    with pytest.raises(TerrainError, match="band 1 is the colour 'red'"):
        read_geotiff(write_raw(file, raster, photometric="RGB"))


def test_heights_beside_a_picture_are_read(file: Path) -> None:
    raster = np.stack([HEIGHTS.astype(np.float32)] * 4)
    raster[:3] += 100.0
    meaning = [ColorInterp[name] for name in ("red", "green", "blue", "undefined")]
    write_raw(file, raster[:, ::-1], colorinterp=meaning)
    with pytest.raises(TerrainError, match="colour 'red'"):
        read_geotiff(file)
    np.testing.assert_array_equal(read_geotiff(file, band=4).z, HEIGHTS)


def test_degrees_are_refused(file: Path) -> None:
    with pytest.raises(TerrainError, match=r"degrees.*reproject"):
        read_geotiff(write_raw(file, HEIGHTS, Affine(1e-5, 0, 77, 0, -1e-5, 18), crs="EPSG:4326"))


def test_utm_coordinates_and_high_ground_get_a_datum(file: Path) -> None:
    heights = HEIGHTS.astype(np.float64) - 4512.3
    east, north = 500_123.75, 4_100_456.25
    path = write_raw(
        file, heights[::-1], Affine(0.1, 0, east, 0, -0.1, north + 0.5), crs="EPSG:32611"
    )
    terrain = read_geotiff(path)
    assert terrain.datum == (500_123.0, 4_100_456.0, -4513.0)
    assert terrain.origin_m == pytest.approx((0.8, 0.3), abs=1e-6)
    np.testing.assert_allclose(terrain.z, HEIGHTS + 0.7, atol=1e-5)  # float32 of the local height


def test_scale_and_offset_are_applied(file: Path) -> None:
    raw = (HEIGHTS[::-1] * 100).astype(np.int16)
    terrain = read_geotiff(write_raw(file, raw, scales=[0.01], offsets=[5.0]))
    np.testing.assert_allclose(terrain.z, HEIGHTS + 5.0, rtol=1e-6)


# ---------------------------------------------------------------------------------------- holes


def holed(fill: float, dtype: Any = np.float32) -> np.ndarray:
    """North-up raster with one hole at cell (iy 1, ix 2)."""
    raster = HEIGHTS.astype(dtype)
    raster[1, 2] = fill
    return raster[::-1]


def assert_one_hole(terrain: Terrain) -> None:
    expected = HEIGHTS.copy()
    expected[1, 2] = np.nan
    np.testing.assert_array_equal(terrain.z, expected)


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        (np.nan, np.float32),
        (-9999.0, np.float32),
        (-3.4028234663852886e38, np.float32),
        (0.5, np.float64),
        (-32768, np.int16),
        (255, np.uint8),
    ],
)
def test_declared_nodata_is_unknown(file: Path, fill: float, dtype: Any) -> None:
    assert_one_hole(read_geotiff(write_raw(file, holed(fill, dtype), nodata=fill)))


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        (-9999.0, np.float32),
        (-32768.0, np.float32),
        (-32768, np.int16),
        (-3.4028234663852886e38, np.float32),
        (-3.4028226550889045e38, np.float32),  # the other "lowest float" found in the wild
        (1e20, np.float64),
        (np.inf, np.float32),
        (-np.inf, np.float32),
    ],
)
def test_undeclared_fill_is_refused_unless_given(file: Path, fill: float, dtype: Any) -> None:
    write_raw(file, holed(fill, dtype))
    with pytest.raises(TerrainError, match=r"1 cell\(s\) hold .* pass nodata="):
        read_geotiff(file)
    assert_one_hole(read_geotiff(file, nodata=fill))
    assert_one_hole(read_geotiff(file, nodata=[-1.0, fill]))


def test_undeclared_fill_beside_a_declared_one_is_refused(file: Path) -> None:
    raster = holed(-9999.0)
    raster[0, 0] = -32768.0
    with pytest.raises(TerrainError, match="-32768"):
        read_geotiff(write_raw(file, raster, nodata=-9999.0))


def test_dataset_mask_is_honoured(file: Path) -> None:
    mask = np.full(HEIGHTS.shape, 255, np.uint8)
    mask[::-1][1, 2] = 0
    assert_one_hole(read_geotiff(write_raw(file, holed(-9999.0), mask=mask)))


@pytest.mark.parametrize("description", ["mask", "Valid", "valid_cells"])
def test_mask_band_is_honoured_and_is_no_layer(file: Path, description: str) -> None:
    valid = np.ones_like(HEIGHTS)
    valid[::-1][1, 2] = 0.0
    raster = np.stack([holed(7.0), valid])
    terrain = read_geotiff(write_raw(file, raster, descriptions=["elevation_m", description]))
    assert_one_hole(terrain)
    assert terrain.layers == {}


def test_alpha_band_is_honoured(file: Path) -> None:
    alpha = np.full(HEIGHTS.shape, 255, np.int16)
    alpha[::-1][1, 2] = 0
    raster = np.stack([holed(7, np.int16), alpha])
    interpretation = [ColorInterp.gray, ColorInterp.alpha]
    assert_one_hole(read_geotiff(write_raw(file, raster, colorinterp=interpretation)))


def test_other_bands_become_layers(file: Path) -> None:
    raster = np.stack([HEIGHTS + 2, HEIGHTS, HEIGHTS + 1, HEIGHTS + 3])[:, ::-1]
    write_raw(file, raster, descriptions=["spacing", "elevation", None, "spacing"])
    terrain = read_geotiff(file, band=2)
    np.testing.assert_array_equal(terrain.z, HEIGHTS)
    assert list(terrain.layers) == ["spacing", "band_3", "spacing_4"]
    np.testing.assert_array_equal(terrain.layers["band_3"], HEIGHTS + 1)
    for band in (0, 5, -1):
        with pytest.raises(TerrainError, match="no band"):
            read_geotiff(file, band=band)


# ---------------------------------------------------------------------------- non-square pixels


def test_pixels_that_are_not_square_are_interpolated_to_the_finer(file: Path) -> None:
    rows, columns = np.arange(6.0), np.arange(8.0)
    plane = 3.0 * (rows[:, None] * 0.8) + 2.0 * (columns[None, :] * 0.5)
    terrain = read_geotiff(write_raw(file, plane, Affine(0.5, 0, 0, 0, 0.8, 0)))  # south-up
    assert terrain.resolution_m == 0.5
    assert terrain.shape == (9, 8)  # 4.8 m hold 9 whole cells of 0.5 m
    assert terrain.origin_m == pytest.approx((0.25, 0.25))
    y = 0.25 + 0.5 * np.arange(9)
    expected = 3.0 * np.clip(y - 0.4, 0.0, 4.0)[:, None] + 2.0 * (0.5 * columns)[None, :]
    np.testing.assert_allclose(terrain.z, expected, atol=1e-5)


def test_holes_spread_but_are_not_filled_when_interpolating(file: Path) -> None:
    raster = np.zeros((4, 6), np.float32)
    raster[1, 3] = np.nan
    terrain = read_geotiff(write_raw(file, raster, Affine(0.6, 0, 0, 0, 0.5, 0)))
    centres = 0.25 + 0.5 * np.arange(terrain.shape[1])
    near = (np.abs(centres - 2.1) < 0.6 - 1e-9) | (np.abs(centres - 2.1) < 1e-9)
    np.testing.assert_array_equal(np.isnan(terrain.z[1]), near)
    assert not np.isnan(terrain.z[[0, 2, 3]]).any()


def test_very_oblong_pixels_are_refused(file: Path) -> None:
    with pytest.raises(TerrainError, match="too far from square"):
        read_geotiff(write_raw(file, HEIGHTS, Affine(0.5, 0, 0, 0, -1.2, 9)))


# --------------------------------------------------------------------------------- broken files


def test_missing_file_folder_and_junk_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TerrainError, match=r"nowhere\.tif: no such file"):
        read_geotiff(tmp_path / "nowhere.tif")
    with pytest.raises(TerrainError, match="not a file"):
        read_geotiff(tmp_path)
    for name, content in {
        "empty.tif": b"",
        "text.tif": b"x,y,z\n1,2,3\n",
        "header.tif": b"II*\0" + bytes(40),
        "png.tif": b"\x89PNG\r\n\x1a\n" + bytes(40),
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TerrainError, match=rf"{name}: not usable as a GeoTIFF"):
            read_geotiff(tmp_path / name)


@pytest.mark.parametrize("options", [{}, {"compress": "deflate"}, {"tiled": True}])
def test_truncated_files_are_refused(file: Path, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    write_raw(file, rng.normal(size=(200, 300)).astype(np.float32), **options)
    whole = file.read_bytes()
    for share in (0.01, 0.3, 0.6, 0.95):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(TerrainError, match=r"map\.tif"):
            read_geotiff(file)


def test_files_that_lost_only_their_last_bytes_are_refused(file: Path) -> None:
    # All pixels are there, but the names, units and frame at the end of the file are cut.
    write_geotiff(file, Terrain(HEIGHTS, RES, (-3.0, 7.0)))
    whole = file.read_bytes()
    for lost in (1, 10, 50, 200):
        file.write_bytes(whole[:-lost])
        with pytest.raises(TerrainError, match=r"map\.tif: truncated or damaged: .*GDALMetadata"):
            read_geotiff(file)
    file.write_bytes(whole + b"\0")  # one too many loses nothing
    assert read_geotiff(file).shape == HEIGHTS.shape


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in rasterio's log
@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_never_raise_anything_else(file: Path, data: st.DataObject) -> None:
    write_geotiff(file, Terrain(HEIGHTS, RES, (-3.0, 7.0)), force=True)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        terrain = read_geotiff(file)
    except TerrainError as fault:
        assert str(file) in str(fault)
    else:
        assert terrain.z.ndim == 2


def test_complex_all_unknown_and_huge_files_are_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TerrainError, match="complex64, not real"):
        read_geotiff(write_raw(file, HEIGHTS.astype(np.complex64)))
    with pytest.raises(TerrainError, match="every height is unknown"):
        read_geotiff(write_raw(file, np.full_like(HEIGHTS, np.nan)))
    with pytest.raises(TerrainError, match="65 bands are more than"):
        read_geotiff(write_raw(file, np.zeros((65, 2, 2), np.uint8)))
    monkeypatch.setattr(geotiff, "MAX_CELLS", 44)
    with pytest.raises(TerrainError, match="crop the file first"):
        read_geotiff(write_raw(file, HEIGHTS))


# --------------------------------------------------------------------------------------- export


def same(a: Terrain, b: Terrain) -> None:
    assert a.z.tobytes() == b.z.tobytes()
    assert a.shape == b.shape
    for label in ("resolution_m", "origin_m", "datum", "name", "start_m", "goal_m", "attribution"):
        assert getattr(a, label) == getattr(b, label), label
    assert list(a.layers) == list(b.layers)
    for label, layer in a.layers.items():
        assert layer.tobytes() == b.layers[label].tobytes()
    assert a.sha256 == b.sha256


def test_round_trip_of_everything(file: Path) -> None:
    z = HEIGHTS.copy()
    z[3, 4] = np.nan
    terrain = Terrain(
        z,
        0.1,
        (1 / 3, 0.7),
        (500_123.0, 4_100_456.0, -2513.0),
        "Séítah / north",
        (0.4, 0.8),
        (1.0, 1.0),
        {"spacing": z + 1},
        "NASA/JPL-Caltech",
    )
    write_geotiff(file, terrain)
    same(read_geotiff(file), terrain)
    with rasterio.open(
        file
    ) as source:  # as any other tool sees it: north-up, at the source's place
        assert source.transform.c == pytest.approx(500_123 + 1 / 3 - 0.05)
        assert source.transform.f == pytest.approx(4_100_456.7 + 0.45)
        assert source.read(1)[0, 0] == HEIGHTS[4, 0] - 2513.0
        assert source.units[0] == "m"
        assert source.descriptions == ("elevation_m", "spacing")


@given(
    z=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.one_of(st.floats(-900, 900, width=32), st.just(np.nan)),
    ).filter(lambda z: not np.isnan(z).all()),
    resolution=st.floats(0.01, 50),
    origin=st.tuples(st.floats(-500, 500), st.floats(-500, 500)),
    datum=st.tuples(st.integers(-(10**7), 10**7), st.integers(-(10**7), 10**7)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_is_bit_exact(
    file: Path,
    z: np.ndarray,
    resolution: float,
    origin: tuple[float, float],
    datum: tuple[int, int],
) -> None:
    terrain = Terrain(z, resolution, origin, (float(datum[0]), float(datum[1]), 0.0))
    write_geotiff(file, terrain, force=True)
    same(read_geotiff(file), terrain)


def test_exported_file_cropped_by_another_tool_keeps_its_place(file: Path, tmp_path: Path) -> None:
    terrain = Terrain(HEIGHTS, RES, (-3.0, 7.0), (5e5, 4e6, 0.0), start_m=(-3.0, 7.0))
    write_geotiff(file, terrain)
    with rasterio.open(file) as source:
        window = rasterio.windows.Window(2, 0, 7, 4)
        part = source.read(1, window=window)
        profile = source.profile | {
            "width": 7,
            "height": 4,
            "transform": Affine(RES, 0, source.transform.c + 2 * RES, 0, -RES, source.transform.f),
        }
        tags = source.tags()
    with rasterio.open(tmp_path / "part.tif", "w", **profile) as sink:
        sink.write(part, 1)
        sink.update_tags(**tags)
    cropped = read_geotiff(tmp_path / "part.tif")
    assert cropped.datum == terrain.datum
    assert cropped.origin_m == pytest.approx((-2.0, 7.5))
    assert cropped.start_m is None
    assert cropped.height(0.3, 8.2) == pytest.approx(terrain.height(0.3, 8.2))


@pytest.mark.parametrize("note", ["{", "[]", '"x"', '{"name": 1}', '{"datum_m": [1], "name": "x"}'])
def test_damaged_note_is_ignored(file: Path, note: str) -> None:
    write_raw(file, HEIGHTS[::-1])
    with rasterio.open(file, "r+") as sink:
        sink.update_tags(MLNAV_TERRAIN=note)
    assert read_geotiff(file).origin_m == (-3.0, 7.0)


def test_existing_file_is_kept_without_force(file: Path) -> None:
    file.write_bytes(b"precious")
    terrain = Terrain(HEIGHTS, RES)
    with pytest.raises(TerrainError, match="exists already"):
        write_geotiff(file, terrain)
    assert file.read_bytes() == b"precious"
    write_geotiff(file, terrain, force=True)
    same(read_geotiff(file, name="terrain"), terrain)


def test_failed_write_leaves_the_old_file_and_no_litter(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"precious")

    def full_disk(source: Any, target: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(TerrainError, match="disk full"):
        write_geotiff(file, Terrain(HEIGHTS, RES), force=True)
    assert file.read_bytes() == b"precious"
    assert list(file.parent.iterdir()) == [file]


def test_unwritable_place_is_a_terrain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TerrainError, match=r"map\.tif: cannot be written: "):
        write_geotiff(tmp_path / "file" / "map.tif", Terrain(HEIGHTS, RES))


def test_folders_are_made(tmp_path: Path) -> None:
    write_geotiff(tmp_path / "new" / "map.tif", Terrain(HEIGHTS, RES))
    assert read_geotiff(tmp_path / "new" / "map.tif").shape == HEIGHTS.shape
