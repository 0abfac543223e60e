"""GeoTIFF in and out. Ambiguous files are refused.

GDAL's geotransform always refers to pixel corners, also of PixelIsPoint files.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.errors import CRSError, NotGeoreferencedWarning, RasterioError
from rasterio.io import MemoryFile

from mlnav.io import whole_file
from mlnav.terrain.terrain import MAX_ABS_HEIGHT_M, Point, Terrain, TerrainError

MAX_CELLS = 64_000_000
"""Largest raster that is read, cells times bands; more would not fit beside a planner in memory."""

MAX_BANDS = 64
"""Most bands a file may have: a damaged count makes GDAL crawl through tens of thousands."""

MAX_PIXEL_ASPECT = 2.0
"""Non-square pixels up to this ratio are resampled; beyond it one axis is mostly interpolated."""

_LOCAL_XY_M = 10_000.0
"""Coordinates within this of zero already are a local frame: float32 resolves 1 mm there."""

_LOCAL_Z_M = 1_000.0
"""Heights beyond this get a vertical datum: float32 resolves 0.06 mm at 1 km, 0.5 mm at 5 km."""

_UNDECLARED_FILL = (-9999.0, -99999.0, -32768.0, -32767.0, 32767.0, 65535.0)
"""Customary fill values; no solid ground has these heights."""

_US_FT = 1200.0 / 3937.0
_UNIT_M = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("km", "kilometre", "kilometer"), 1000.0),
    **dict.fromkeys(("cm", "centimetre", "centimeter"), 0.01),
    **dict.fromkeys(("mm", "millimetre", "millimeter"), 0.001),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("us-ft", "ftus", "us survey foot", "foot_us"), _US_FT),
}

_WARNINGS = {
    "truncated or damaged": r"(?i)tag ignored|io error|read error|truncated|corrupt|fail",
    "its CRS cannot be resolved, so its units are not known": r"\bPROJ: ",
}
"""Faults by GDAL's warnings of them. Where PROJ does not know a CRS, GDAL takes feet for metres."""

_FOOT_EPSG = 2227
"""A projected CRS in US survey feet, which only PROJ's database knows."""

_UNIT_TOLERANCE = 1e-5
"""Relative: the US survey foot is 2e-6 longer than the foot, and counts as the same."""

_COLOURS = frozenset(range(ColorInterp.palette, ColorInterp.Cr + 1)) - {ColorInterp.alpha}
"""Band interpretations of pictures; GDAL calls a band of heights grey or undefined."""

_TAG = "MLNAV_TERRAIN"
"""Metadata item with the frame as JSON, so that an exported terrain comes back exactly."""


@dataclass(frozen=True)
class Reading:
    """How to read a GeoTIFF whose metadata is incomplete or wrong; see `read_geotiff`."""

    band: int = 1
    nodata: tuple[float, ...] = ()
    vertical_unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodata", tuple(float(v) for v in self.nodata))

    def as_dict(self) -> dict[str, Any]:
        """For records in JSON; `Reading(**...)` reads it back."""
        return asdict(self) | {"nodata": list(self.nodata)}


AS_DECLARED = Reading()


@dataclass(frozen=True)
class _Frame:
    """What an exported terrain notes of itself."""

    name: str
    datum_m: tuple[float, float, float]
    origin_m: Point
    start_m: Point | None
    goal_m: Point | None


_FRAME = TypeAdapter(_Frame)


def read_geotiff(
    path: str | os.PathLike[str],
    *,
    band: int = 1,
    nodata: float | Sequence[float] | None = None,
    vertical_unit: str | None = None,
    name: str | None = None,
) -> Terrain:
    """Read a terrain from a GeoTIFF.

    Heights are band ``band`` with the band's scale and offset, in metres. A cell is unknown where
    it is NaN, equals the declared nodata value or one of ``nodata``, or is off in the dataset's
    mask, an alpha band or a band described 'mask' or 'valid…'. The remaining bands become
    ``layers`` under their descriptions (``band_<n>`` without one), unscaled by units.

    Cell (0, 0) gets the smallest x and y; rasters turned by multiples of 90 degrees are converted,
    other angles refused. Projected feet become metres. Pixels that are not square are resampled
    linearly to the finer spacing (NaN spreads). Coordinates beyond 10 km are reduced by the whole
    metres of cell (0, 0), heights beyond 1 km by those of the lowest; see ``Terrain.datum``.

    Args:
        path: a .tif file.
        band: 1-based index of the elevation band.
        nodata: further raw values that mean unknown. Customary fill values (-9999, -32768,
            -3.4e38, …) that the file does not declare are refused unless given here.
        vertical_unit: unit of the heights ('m', 'ft', 'km', …), whatever the file says. Needed
            where the units of band and CRS differ, and where only the CRS declares one, not metres.
        name: name of the terrain; the file's stem, or the exported name, by default.

    Raises:
        TerrainError: the file is missing, unreadable, truncated, not a TIFF, larger than
            ``MAX_CELLS``, or holds something this function refuses; the message has the path.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise TerrainError("not a file" if file.exists() else "no such file")
        with warnings.catch_warnings(), _losses_are_faults():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)  # refused by _upright instead
            with rasterio.open(file, driver="GTiff") as source:
                terrain = _read(source, band, nodata, vertical_unit)
    except TerrainError as fault:
        raise TerrainError(f"{file}: {fault}") from fault
    except UnicodeEncodeError as fault:
        raise TerrainError(f"{file}: its name cannot be read in this locale") from fault
    except (RasterioError, OSError, UnicodeDecodeError) as fault:  # GDAL may quote raw bytes
        raise TerrainError(f"{file}: not usable as a GeoTIFF: {fault}") from fault
    return replace(terrain, name=name or terrain.name or file.stem)


def write_geotiff(path: str | os.PathLike[str], terrain: Terrain, *, force: bool = False) -> None:
    """Write a terrain as a north-up GeoTIFF that ``read_geotiff`` reads back bit for bit.

    Band 1 is elevation in metres with NaN for unknown, then one band per layer. The datum is added
    back, so the file lies where the source lay (in metres and without its CRS); with a vertical
    datum the file is float64. It appears whole or not at all. Raises TerrainError: the file exists
    and ``force`` is not set, or it cannot be written.
    """
    file = Path(path)
    if file.exists() and not force:
        raise TerrainError(f"{file}: exists already; pass force to replace it")
    try:
        with whole_file(file) as temporary:
            temporary.write_bytes(_encoded(terrain))
    except OSError as fault:
        raise TerrainError(f"{file}: cannot be written: {fault.strerror or fault}") from fault


@contextlib.contextmanager
def _losses_are_faults() -> Iterator[None]:
    """Refuse files of which GDAL warns, in this thread, that it could not read something."""
    thread, messages = threading.get_ident(), list[str]()

    def collect(record: logging.LogRecord) -> bool:
        if record.thread == thread and record.levelno >= logging.WARNING:
            messages.append(record.getMessage())
        return True

    log = logging.getLogger("rasterio._env")  # where rasterio sends GDAL's warnings
    log.addFilter(collect)
    try:
        yield
    finally:
        log.removeFilter(collect)
    for fault, pattern in _WARNINGS.items():
        for message in messages:
            if re.search(pattern, message):
                raise TerrainError(f"{fault}: {message}")


# ---------------------------------------------------------------------------------------- reading


def _read(
    source: Any, band: int, nodata: float | Sequence[float] | None, vertical_unit: str | None
) -> Terrain:
    width, height, count = source.width, source.height, source.count
    if count > MAX_BANDS:
        raise TerrainError(f"{count} bands are more than {MAX_BANDS}: damaged, or no terrain")
    if not 1 <= band <= count:
        raise TerrainError(f"no band {band}, the file has {count}")
    if width * height * count > MAX_CELLS:
        cells = f"{width} x {height} cells x {count} bands"
        raise TerrainError(f"{cells} are more than {MAX_CELLS}: crop the file first")
    _check_no_colour(source, band)
    horizontal_m = _horizontal_unit_m(source.crs)
    vertical_m = _vertical_unit_m(source.units[band - 1], vertical_unit, source.crs, horizontal_m)
    extra = np.atleast_1d([] if nodata is None else nodata).astype(np.float64)

    bands = {"": _heights_m(source, band, extra, vertical_m)}
    for i in source.indexes:
        if i != band and not _is_mask(source, i):
            label = source.descriptions[i - 1] or f"band_{i}"
            bands[label if label not in bands else f"{label}_{i}"] = _values(source, i)

    bands, first, step = _upright(bands, source.transform)
    bands, first, resolution = _square(bands, first, step)
    z = bands.pop("")
    if np.isnan(z).all():
        raise TerrainError("every height is unknown")
    saved, tags = None, source.tags()
    with contextlib.suppress(ValidationError):  # the file is not ours, or the note is damaged
        saved = _FRAME.validate_json(tags.get(_TAG, "{}"))
    x, y = first[0] * horizontal_m, first[1] * horizontal_m
    resolution_m = resolution * horizontal_m
    datum = _datum(x, y, resolution_m, z, saved)
    origin_m = (x - datum[0], y - datum[1])
    if saved and math.dist(saved.origin_m, origin_m) < 1e-6:
        origin_m = saved.origin_m  # free of the rounding of adding the datum
    credit = "; ".join(tags[k] for k in ("CREDIT", "LICENSE", "SOURCE") if tags.get(k))
    terrain = Terrain(
        (z - datum[2]).astype(np.float32),
        resolution_m,
        origin_m,
        datum,
        saved.name if saved else "",
        layers={k: v.astype(np.float32) for k, v in bands.items()},
        attribution=tags.get("TIFFTAG_COPYRIGHT", credit or None),
    )
    return terrain.with_ends(saved.start_m, saved.goal_m) if saved else terrain


def _values(source: Any, band: int) -> NDArray[np.float64]:
    """The band with scale and offset applied; NaN where the file declares it invalid."""
    if np.dtype(source.dtypes[band - 1]).kind not in "iuf":
        raise TerrainError(f"band {band} holds {source.dtypes[band - 1]}, not real numbers")
    scale, offset = source.scales[band - 1], source.offsets[band - 1]
    if not (math.isfinite(scale) and math.isfinite(offset) and scale != 0.0):
        raise TerrainError(f"band {band} has scale {scale} and offset {offset}")
    raw = source.read(band).astype(np.float64)
    raw[source.read_masks(band) == 0] = np.nan
    if (scale, offset) != (1.0, 0.0):  # adding 0 would turn -0.0 into 0.0
        raw = raw * scale + offset
    return np.asarray(raw)


def _heights_m(
    source: Any, band: int, nodata: NDArray[np.float64], unit_m: float
) -> NDArray[np.float64]:
    """Heights [m] of the elevation band, NaN where unknown; undeclared fill values are refused."""
    heights = _values(source, band) * unit_m
    raw = source.read(band)
    for value in nodata:
        with np.errstate(over="ignore"):  # a fill beyond float32 simply matches nothing there
            as_stored = raw.dtype.type(value) if raw.dtype.kind == "f" else value
        heights[raw == as_stored] = np.nan
    for i in source.indexes:
        if i != band and _is_mask(source, i):
            heights[~(_values(source, i) > 0.0)] = np.nan

    suspect = np.isin(raw, _UNDECLARED_FILL) | (np.abs(heights) > MAX_ABS_HEIGHT_M)
    suspect &= ~np.isnan(heights)
    if suspect.any():
        value = float(raw[suspect][0])
        raise TerrainError(
            f"{int(suspect.sum())} cell(s) hold {value!r} or the like, which is no height but"
            f" is not declared as nodata: pass nodata={value!r} (--nodata) to read them as unknown"
        )
    return heights


def _is_mask(source: Any, band: int) -> bool:
    label = str(source.descriptions[band - 1] or "").strip().lower()
    is_alpha = source.colorinterp[band - 1] == ColorInterp.alpha
    return is_alpha or label == "mask" or label.startswith("valid")


def _check_no_colour(source: Any, band: int) -> None:
    """Refuse a picture: colours would be read as metres."""
    colour = source.colorinterp[band - 1]
    if colour in _COLOURS:
        raise TerrainError(
            f"band {band} is the colour {colour.name!r} of a picture, not heights: give a raster"
            " of heights, or the number of its band of heights"
        )
    values = [i for i in source.indexes if not _is_mask(source, i)]
    if len(values) >= 3 and all(source.dtypes[i - 1] == "uint8" for i in values):
        raise TerrainError(
            f"{len(values)} bands of uint8 are a picture, not heights: give a raster of heights"
        )


def _horizontal_unit_m(crs: Any) -> float:
    if not crs:
        return 1.0
    _check_database()
    if crs.is_geographic:
        raise TerrainError(
            "coordinates are degrees: reproject to a projected CRS in metres first,"
            " for example with gdalwarp -t_srs"
        )
    try:
        _, factor = crs.units_factor  # of local (engineering) systems as well
    except CRSError as fault:
        raise TerrainError(f"the CRS has no linear unit: {fault}") from fault
    return float(factor)


def _check_database() -> None:
    """Refuse a CRS where PROJ's database is missing: GDAL then takes feet for metres."""
    # At most it warns, and a program may have turned warnings off, so a known CRS is tried.
    try:
        factor = CRS.from_epsg(_FOOT_EPSG).units_factor[1]
    except CRSError:
        factor = math.nan
    if abs(factor / _US_FT - 1.0) < _UNIT_TOLERANCE:
        return
    named = [f"{k}={os.environ[k]}" for k in ("PROJ_DATA", "PROJ_LIB") if k in os.environ]
    raise TerrainError(
        "its CRS cannot be resolved, so the unit of its coordinates is not known: the database of"
        f" PROJ was not found or is of another version ({', '.join(named) or 'proj.db'});"
        " unset PROJ_DATA and PROJ_LIB to use the one that comes with rasterio"
    )


def _vertical_unit_m(
    declared: str | None, given: str | None, crs: Any, horizontal_m: float
) -> float:
    if given is not None:
        return _unit_m(given)
    of_crs = _vertical_unit_of(crs)
    if declared is None and of_crs is None and horizontal_m != 1.0:
        raise TerrainError(
            "the map is not in metres and the elevation band declares no unit:"
            " pass vertical_unit='m' or 'ft' (--vertical-unit)"
        )
    if declared is None:
        return of_crs[1] if of_crs else 1.0
    factor = _unit_m(declared)
    if crs:
        name, expected = of_crs or (str(crs.units_factor[0]), horizontal_m)
        if abs(factor / expected - 1.0) > _UNIT_TOLERANCE:
            part = "vertical" if of_crs else "horizontal"
            raise TerrainError(
                f"the elevation band is in {declared!r}, but the {part} unit of the CRS is"
                f" {name!r}: pass vertical_unit={declared!r} or {name!r} (--vertical-unit),"
                " whichever the heights are in"
            )
    return factor


def _unit_m(unit: str) -> float:
    factor = _UNIT_M.get(unit.strip().lower())
    if factor is None:
        raise TerrainError(f"unknown unit of height {unit!r}; known are {', '.join(_UNIT_M)}")
    return factor


def _vertical_unit_of(crs: Any) -> tuple[str, float] | None:
    """Name and metres of the vertical unit of a CRS; None where it has none."""
    if not crs:
        return None
    try:
        axes = list(_axes(crs.to_dict(projjson=True)))
    except CRSError as fault:
        raise TerrainError(f"the CRS cannot be resolved: {fault}") from fault
    for axis in axes:
        if axis.get("direction") == "down":
            raise TerrainError("the CRS counts depths, not heights: turn the sign of the map first")
        if axis.get("direction") == "up":
            unit = axis.get("unit", "metre")
            if isinstance(unit, str):
                return unit, _unit_m(unit)
            return str(unit["name"]), float(unit["conversion_factor"])
    return None


def _axes(node: Any) -> Iterator[dict[str, Any]]:
    """Axes of a CRS and its components in PROJJSON, without those of the CRS it is derived from."""
    if isinstance(node, list):
        for part in node:
            yield from _axes(part)
    elif isinstance(node, dict):
        if "direction" in node:
            yield node
        for key in ("source_crs", "components", "coordinate_system", "axis"):
            yield from _axes(node.get(key))


Bands = dict[str, NDArray[np.float64]]
Pair = tuple[float, float]


def _upright(bands: Bands, transform: Any) -> tuple[Bands, Pair, Pair]:
    """Bands with y growing along rows; centre of cell (0, 0) and positive steps (x, y)."""
    if transform.is_identity:
        raise TerrainError("the file is not georeferenced: it has no geotransform")
    a, b, c, d, e, f = transform[:6]
    negligible = 1e-6 * max(abs(a), abs(b), abs(d), abs(e))
    if max(abs(b), abs(d)) <= negligible:
        step_x, step_y = a, e
    elif max(abs(a), abs(e)) <= negligible:  # a quarter turn: rows of the file run along x
        step_x, step_y = b, d
        bands = {k: v.T for k, v in bands.items()}
    else:
        raise TerrainError(
            f"the raster is rotated by {math.degrees(math.atan2(d, a)):.3f} deg against x and y:"
            " resample it to a north-up grid first, for example with gdalwarp"
        )
    if not all(math.isfinite(v) for v in (c, f)) or step_x == 0.0 or step_y == 0.0:
        raise TerrainError(f"degenerate geotransform {transform.to_gdal()}")
    ny, nx = bands[""].shape
    x = c + 0.5 * step_x + (nx - 1) * min(step_x, 0.0)
    y = f + 0.5 * step_y + (ny - 1) * min(step_y, 0.0)
    flips = np.s_[:: 1 if step_y > 0 else -1, :: 1 if step_x > 0 else -1]
    return {k: v[flips] for k, v in bands.items()}, (x, y), (abs(step_x), abs(step_y))


def _square(bands: Bands, first: Pair, step: Pair) -> tuple[Bands, Pair, float]:
    """Bands on square cells: the coarser axis is interpolated linearly to the finer step."""
    fine, coarse = min(step), max(step)
    if coarse - fine <= 1e-6 * fine:
        return bands, first, step[0]
    if coarse > MAX_PIXEL_ASPECT * fine:
        raise TerrainError(
            f"pixels of {step[0]:g} x {step[1]:g} are too far from square"
            f" (ratio above {MAX_PIXEL_ASPECT:g}): resample the file first"
        )
    axis = 1 if step[0] > step[1] else 0
    n = bands[""].shape[axis]
    count = max(1, math.floor(n * coarse / fine + 1e-6))
    at = (np.arange(count) + 0.5) * fine / coarse - 0.5  # new centres, in old cells
    shift = at[0] * coarse
    at = np.clip(at, 0.0, n - 1.0)
    low = at.astype(np.intp)
    high = np.minimum(low + 1, n - 1)
    w = (at - low).reshape(-1, *(1,) * (1 - axis))

    def resampled(v: NDArray[np.float64]) -> NDArray[np.float64]:
        upper = np.where(w > 0.0, w * v.take(high, axis), 0.0)
        return np.asarray((1.0 - w) * v.take(low, axis) + upper)

    x, y = first
    moved = (x + shift, y) if axis == 1 else (x, y + shift)
    return {k: resampled(v) for k, v in bands.items()}, moved, fine


def _datum(
    x: float, y: float, resolution_m: float, z: NDArray[np.float64], saved: _Frame | None
) -> tuple[float, float, float]:
    ny, nx = z.shape

    def is_local(dx: float, dy: float) -> bool:
        far_x, far_y = x + nx * resolution_m - dx, y + ny * resolution_m - dy
        return bool(max(abs(x - dx), abs(y - dy), abs(far_x), abs(far_y)) <= _LOCAL_XY_M)

    if saved and is_local(*saved.datum_m[:2]):
        return saved.datum_m
    dx, dy = (0.0, 0.0) if is_local(0.0, 0.0) else (math.floor(x), math.floor(y))
    dz = math.floor(np.nanmin(z)) if np.nanmax(np.abs(z)) > _LOCAL_Z_M else 0.0
    return float(dx), float(dy), float(dz)


# ---------------------------------------------------------------------------------------- writing


def _encoded(terrain: Terrain) -> bytes:
    """The file's bytes, made in memory: GDAL reports a full disk too late."""
    (ny, nx), res = terrain.shape, terrain.resolution_m
    dx, dy, dz = terrain.datum
    left = terrain.origin_m[0] + dx - 0.5 * res
    top = terrain.origin_m[1] + dy + (ny - 0.5) * res
    frame = _Frame(terrain.name, terrain.datum, terrain.origin_m, terrain.start_m, terrain.goal_m)
    heights = terrain.z if dz == 0.0 else terrain.z.astype(np.float64) + dz
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff",
            width=nx,
            height=ny,
            count=1 + len(terrain.layers),
            dtype=heights.dtype,
            nodata=math.nan,
            transform=rasterio.Affine(res, 0.0, left, 0.0, -res, top),
            compress="deflate",
            predictor=3,
        ) as sink:
            sink.update_tags(**{_TAG: json.dumps(asdict(frame))})
            if terrain.attribution is not None:
                sink.update_tags(TIFFTAG_COPYRIGHT=terrain.attribution)
            sink.set_band_unit(1, "m")
            bands = [("elevation_m", heights), *terrain.layers.items()]
            for i, (label, band) in enumerate(bands, start=1):
                sink.write(band[::-1].astype(heights.dtype), i)
                sink.set_band_description(i, label)
        return bytes(memory.getbuffer())
