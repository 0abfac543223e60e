"""The data set: windows of synthetic terrain with ACE verdicts as labels, one file per terrain.

Training, validation and test parts have their own seeds, so they share no terrain. A file that
exists is complete: an interrupted run resumes.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.compute import results
from mlnav.config import Config
from mlnav.io import whole_file, write_json
from mlnav.risk.network import network_input as input_of_map
from mlnav.terrain import Terrain, generate
from mlnav.terrain.recipes import (
    Base,
    Craters,
    Ditches,
    Recipe,
    Relief,
    Ripples,
    Rocks,
    Scarps,
    Unknown,
)

PARTS = ("train", "validation", "test")
BINS = 16
HEIGHT_STEP_M = 1.0 / 4096.0
"""Step of heights stored as int16 about the window's mean: +-8 m."""
UNKNOWN = np.int16(-32768)
SUBCELLS = 2
"""Map cells along the edge of a risk cell."""
MAST_HEIGHT_M = 2.0
_MARGIN_M = 2.5
"""Terrain around a window under its outermost poses."""

PAIRS = {"fixed_box": "enav_like", "verified": "flight_like"}
"""Limits that go with each checker. Labels of `fixed_box` are dense; a verdict of `verified` costs
microseconds, so poses are sampled."""


class DataError(ValueError):
    """A data set is missing, damaged, or of other settings."""


@dataclass(frozen=True)
class DataSpec:
    """Settings of a data set, which determine its content.

    Attributes:
        seed: of all terrains, windows, holes and samples.
        terrains: number for each part.
        windows: number per terrain.
        window_m: edge of a square window.
        resolution_m: map cell; a risk cell is SUBCELLS of them wide.
        terrain_m: edge of a terrain.
        samples: labels per window of `verified`.
        unknown_share: share of windows with unknown cells.
    """

    seed: int = 1
    terrains: dict[str, int] = field(
        default_factory=lambda: {"train": 1000, "validation": 80, "test": 80}
    )
    windows: int = 8
    window_m: float = 16.0
    resolution_m: float = 0.1
    terrain_m: float = 44.0
    samples: int = 3000
    unknown_share: float = 0.3

    def __post_init__(self) -> None:
        if set(self.terrains) != set(PARTS) or min(self.terrains.values()) < 1:
            raise DataError(f"terrains must have at least one for each of {', '.join(PARTS)}")
        if self.windows < 1 or self.samples < 2:
            raise DataError("windows must be at least 1 and samples at least 2")
        if self.cells % (4 * SUBCELLS) or self.terrain_m < self.window_m + 2.0 * _MARGIN_M:
            raise DataError(
                f"window_m must be a multiple of {4 * SUBCELLS} cells and terrain_m at least"
                f" {2.0 * _MARGIN_M:g} m more"
            )
        if not 0.0 <= self.unknown_share <= 1.0:
            raise DataError("unknown_share must be from 0 to 1")

    @property
    def cells(self) -> int:
        """Map cells along a window's edge."""
        return round(self.window_m / self.resolution_m)

    @property
    def digest(self) -> str:
        """Hash of the settings."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


# ---------------------------------------------------------------------------------------- terrains


def random_recipe(rng: np.random.Generator, size_m: float, resolution_m: float) -> Recipe:
    """A random terrain: slopes to 25 deg, CFA to 20 %, and landforms."""

    def uniform(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    def each(**ranges: tuple[float, float]) -> dict[str, Any]:
        return {name: uniform(*bounds) for name, bounds in ranges.items()}

    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    rocks = craters = None
    ripples, scarps, ditches = [], [], []
    if chance(0.9):
        mean = uniform(0.35, 0.65)
        rocks = Rocks(
            cfa=uniform(0.0, 0.2),
            d_min_m=uniform(0.1, 0.3) if chance(0.4) else 0.15,
            **each(d_max_m=(0.8, 3.0), height_ratio_min=(0.15, 0.3)),
            height_ratio_mean=mean,
            height_ratio_max=mean + uniform(0.15, 0.5),
            **each(elongation_max=(1.2, 2.5), burial_max=(0.2, 0.8)),
        )
    relief = Relief(
        rms_1m_m=uniform(0.02, 0.06) if chance(0.75) else uniform(0.06, 0.14),
        hurst=uniform(0.5, 0.9),
        wavelength_min_m=uniform(0.5, 1.5),
    )
    if chance(0.2):
        per_km2 = uniform(1500, 8000)
        craters = Craters(per_km2=per_km2, d_min_m=2.5, d_max_m=25.0, depth_ratio_max=0.15)
    for _ in range(int(rng.integers(1, 3)) if chance(0.2) else 0):
        wavelength = uniform(1.0, 5.0)
        height_m = wavelength * uniform(0.03, 0.10)
        cover = each(cover=(0.2, 0.9), patch_m=(6.0, 25.0))
        ripples.append(Ripples(height_m=height_m, wavelength_m=wavelength, **cover))
    if chance(0.15):
        number = int(rng.integers(1, 5))
        sizes = each(height_m=(0.15, 0.8), width_m=(0.1, 1), length_m=(6, 30), back_m=(3, 10))
        scarps.append(Scarps(number=number, **sizes))
    if chance(0.15):
        number = int(rng.integers(1, 5))
        sizes = each(depth_m=(0.1, 0.7), width_m=(0.6, 3.0), length_m=(6.0, 25.0))
        ditches.append(Ditches(number=number, **sizes))
    slope_deg = 25.0 * float(rng.random()) ** 1.3 if chance(0.85) else 0.0
    unknown = Unknown(**each(fraction=(0.01, 0.1), patch_m=(1.0, 4.0))) if chance(0.1) else None
    return Recipe(
        name="training",
        size_m=(size_m, size_m),
        resolution_m=resolution_m,
        base=Base(slope_deg=slope_deg),
        relief=relief,
        rocks=rocks,
        craters=craters,
        ripples=ripples,
        scarps=scarps,
        ditches=ditches,
        unknown=unknown,
    )


def mast_shadow(
    z: NDArray[np.float32], resolution_m: float, viewer: tuple[int, int]
) -> NDArray[np.bool_]:
    """(ny, nx): cells hidden from a camera on a mast over cell (iy, ix), by polar steps."""
    ny, nx = z.shape
    iy, ix = viewer
    reach = math.hypot(max(iy, ny - 1 - iy), max(ix, nx - 1 - ix)) + 1.0
    radius = np.arange(1.0, reach)
    bearing = np.linspace(-math.pi, math.pi, max(8, int(2.0 * math.pi * reach)), endpoint=False)
    rows = np.clip(np.rint(iy + np.sin(bearing)[:, None] * radius).astype(int), 0, ny - 1)
    columns = np.clip(np.rint(ix + np.cos(bearing)[:, None] * radius).astype(int), 0, nx - 1)
    eye = float(np.nan_to_num(z[iy, ix])) + MAST_HEIGHT_M
    rise = (np.nan_to_num(z[rows, columns], nan=-1e3) - eye) / (radius * resolution_m)
    horizon = np.maximum.accumulate(rise, axis=1)
    hidden = np.zeros(rise.shape, np.bool_)
    hidden[:, 1:] = rise[:, 1:] < horizon[:, :-1] - 0.01
    y, x = np.mgrid[0:ny, 0:nx]
    dy, dx = y - iy, x - ix
    spoke = np.rint((np.arctan2(dy, dx) + math.pi) / (2.0 * math.pi) * len(bearing)).astype(int)
    step = np.clip(np.rint(np.hypot(dy, dx)).astype(int) - 1, 0, len(radius) - 1)
    return np.asarray(hidden[spoke % len(bearing), step])


# ----------------------------------------------------------------------------------------- windows


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one or more terrains.

    Attributes:
        heights: (n, cells, cells) int16, in HEIGHT_STEP_M about the window's mean; UNKNOWN.
        dense: (n, BINS, cells/2, cells/2) uint8, rejected of SUBCELLS^2 cells, of `fixed_box`.
        sample_at: (n, samples) int32 flat index into (BINS, cells/2, cells/2), of `verified`.
        sample_bad: (n, samples) bool.
        sample_weight: (n, samples) float32, mean 1 in each window.
    """

    heights: NDArray[np.int16]
    dense: NDArray[np.uint8]
    sample_at: NDArray[np.int32]
    sample_bad: NDArray[np.bool_]
    sample_weight: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.heights)

    @staticmethod
    def stacked(parts: list[Windows]) -> Windows:
        """Concatenate windows."""
        columns = zip(*(p.columns().values() for p in parts), strict=True)
        return Windows(*map(np.concatenate, columns))

    def columns(self) -> dict[str, Any]:
        """The arrays by name."""
        return dict(vars(self))


def heights_m(heights: NDArray[np.int16]) -> NDArray[np.float32]:
    """Stored heights in metres, NaN unknown."""
    return np.where(heights == UNKNOWN, np.float32(np.nan), heights * np.float32(HEIGHT_STEP_M))


def network_input(heights: NDArray[np.int16]) -> NDArray[np.float32]:
    """(n, cells, cells) stored heights -> (n, 2, cells, cells): height above the mean, known."""
    return np.concatenate([input_of_map(z) for z in heights_m(heights)])


def _rng(spec: DataSpec, part: str, *item: int) -> np.random.Generator:
    return np.random.default_rng(
        np.random.SeedSequence(spec.seed, spawn_key=(PARTS.index(part), *item))
    )


def recipe_of(spec: DataSpec, part: str, terrain: int) -> Recipe:
    """The recipe of one terrain of a part."""
    return random_recipe(_rng(spec, part, terrain), spec.terrain_m, spec.resolution_m)


def make_windows(spec: DataSpec, part: str, terrain: int) -> Windows:
    """The windows of one terrain of a part, with labels."""
    rng = _rng(spec, part, terrain)
    recipe = random_recipe(rng, spec.terrain_m, spec.resolution_m)
    ground = generate(recipe, int(rng.integers(2**40, 2**41)))
    made = [_window(spec, ground, rng) for _ in range(spec.windows)]
    return Windows(*(np.stack(columns) for columns in zip(*made, strict=True)))


def _window(spec: DataSpec, ground: Terrain, rng: np.random.Generator) -> tuple[Any, ...]:
    margin = math.ceil(_MARGIN_M / spec.resolution_m)
    span = spec.cells + 2 * margin
    iy, ix = (int(rng.integers(0, n - span + 1)) for n in ground.shape)
    z = ground.z[iy : iy + span, ix : ix + span].copy()
    if rng.random() < spec.unknown_share:
        viewer = (span // 2 + int(rng.integers(-20, 21)), span // 2 + int(rng.integers(-20, 21)))
        z[mast_shadow(z, spec.resolution_m, viewer)] = np.nan
    if not np.isfinite(z).any():
        z[:] = 0.0
    z -= np.float32(np.nanmean(z, dtype=np.float64))
    # Labels are of the stored heights, which are what the network sees.
    stored = np.clip(np.rint(z / HEIGHT_STEP_M), -32767, 32767)
    heights = np.where(np.isnan(z), np.float32(UNKNOWN), stored).astype(np.int16)
    grid = _core.Grid(heights_m(heights), spec.resolution_m, 0.0, 0.0)
    inner = slice(margin, margin + spec.cells)
    dense = _dense_labels(grid, margin, spec.cells)
    return heights[inner, inner], dense, *_sampled_labels(grid, margin, spec, rng)


def _checker(name: str, limits: str, grid: _core.Grid) -> _core.Checker:
    config = Config.model_validate({"checker": name, "limits": limits})
    checker = config.build_checker(grid.z.size)
    checker.set_map(grid)
    return checker


def _dense_labels(grid: _core.Grid, margin: int, cells: int) -> NDArray[np.uint8]:
    inner, side = slice(margin, margin + cells), cells // SUBCELLS
    bad = _checker("fixed_box", PAIRS["fixed_box"], grid).ace_map(BINS)[:, inner, inner] != 0
    blocks = bad.reshape(BINS, side, SUBCELLS, side, SUBCELLS)
    return np.asarray(blocks.sum((2, 4), dtype=np.uint8))


def _sampled_labels(
    grid: _core.Grid, margin: int, spec: DataSpec, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.float32]]:
    """Poses uniform in cells and bins; half of those kept are poses that `fixed_box` rejects.

    Weights are inverse sampling probabilities: weighted sums estimate sums over all poses.
    """
    side = spec.cells // SUBCELLS
    drawn = 6 * spec.samples
    at = rng.integers(0, BINS * side * side, drawn).astype(np.int32)
    bins, rows, columns = np.unravel_index(at, (BINS, side, side))
    cell_m = SUBCELLS * spec.resolution_m
    corner_m = (margin - 0.5) * spec.resolution_m
    poses = np.empty((drawn, 4))
    poses[:, 0] = corner_m + (columns + rng.random(drawn)) * cell_m
    poses[:, 1] = corner_m + (rows + rng.random(drawn)) * cell_m
    poses[:, 2] = bins * (2.0 * math.pi / BINS)
    # Paths are arcs of up to 1/3 per metre, and turns in place.
    poses[:, 3] = np.where(rng.random(drawn) < 0.1, np.inf, rng.integers(-5, 6, drawn) / 15.0)

    limits = PAIRS["verified"]
    doubtful = _checker("fixed_box", limits, grid).reasons(poses) != 0
    weight = np.zeros(drawn, np.float64)
    strata = [np.flatnonzero(doubtful), np.flatnonzero(~doubtful)]
    wanted = spec.samples // 2
    shares = [min(len(strata[0]), wanted), min(len(strata[1]), spec.samples - wanted)]
    for i in (0, 1):  # a stratum with too few members leaves its share to the other
        shares[i] = min(len(strata[i]), spec.samples - shares[1 - i])
    for members, share in zip(strata, shares, strict=True):
        weight[members[:share]] = len(members) / max(share, 1)
    keep = weight > 0.0
    bad = _checker("verified", limits, grid).reasons(np.ascontiguousarray(poses[keep])) != 0
    kept = weight[keep]
    return at[keep], bad, (kept / kept.mean()).astype(np.float32)


# ------------------------------------------------------------------------------------------ shards


def _shard(folder: Path, part: str, terrain: int) -> Path:
    return folder / part / f"{terrain:05d}.npz"


def _make_shard(folder: Path, spec: DataSpec, shard: tuple[str, int]) -> None:
    windows = make_windows(spec, *shard)
    with whole_file(_shard(folder, *shard)) as temporary:
        np.savez(temporary, **windows.columns())


def make_data(
    folder: Path,
    spec: DataSpec,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Make the missing terrains of a data set, and its manifest.

    Raises DataError: the folder holds a data set of other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path = folder / "manifest.json"
    if manifest_path.exists():
        found = read_manifest(folder)
        if found["digest"] != spec.digest:
            raise DataError(f"{folder}: holds a data set of other settings: {found['spec']}")
    else:
        write_json(manifest_path, {"digest": spec.digest, "spec": asdict(spec)})
    for part in PARTS:
        (folder / part).mkdir(exist_ok=True)
        for stale in (folder / part).glob(".*.npz"):
            stale.unlink()
    # The small parts first: a training can be tried before the training part is complete.
    tasks = [(part, i) for part in reversed(PARTS) for i in range(spec.terrains[part])]
    missing = [(p, i) for p, i in tasks if not _shard(folder, p, i).exists()]
    begun = len(tasks) - len(missing)
    progress(begun, len(tasks))
    made = results(missing, partial(_make_shard, folder, spec), workers)
    for done, _ in enumerate(made, begun + 1):
        progress(done, len(tasks))
    counts = {part: _counts(folder, part, spec.terrains[part]) for part in PARTS}
    manifest = {"digest": spec.digest, "spec": asdict(spec), "counts": counts}
    write_json(manifest_path, manifest)
    return manifest


def _counts(folder: Path, part: str, terrains: int) -> dict[str, Any]:
    rows = []
    for i in range(terrains):
        shard = read_shard(_shard(folder, part, i))
        bad, weight = shard.sample_bad, shard.sample_weight
        rows.append({
            "windows": len(shard),
            "unknown": int((shard.heights == UNKNOWN).any((1, 2)).sum()),
            "dense": shard.dense.size * SUBCELLS**2,
            "dense_bad": int(shard.dense.sum(dtype=np.int64)),
            "sampled": bad.size,
            "sampled_bad": int(bad.sum()),
            "weighted_bad": float(weight[bad].sum(dtype=np.float64)),
        })  # fmt: skip
    sums = {name: sum(row[name] for row in rows) for name in rows[0]}
    return {
        "terrains": terrains,
        "windows": sums["windows"],
        "windows_with_unknown": sums["unknown"],
        "fixed_box": {"labels": sums["dense"], "rejected": sums["dense_bad"] / sums["dense"]},
        "verified": {
            "labels": sums["sampled"],
            "rejected_of_sample": sums["sampled_bad"] / sums["sampled"],
            "rejected": sums["weighted_bad"] / sums["sampled"],
        },
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a data set. Raises DataError: there is none, or it is damaged."""
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
        manifest["digest"], manifest["spec"]["terrains"]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise DataError(f"{folder}: no data set: {fault}") from fault
    return manifest


def read_spec(folder: Path) -> DataSpec:
    """The settings of a data set. Raises DataError: there is none, or it is damaged."""
    manifest = read_manifest(folder)
    try:
        spec = DataSpec(**manifest["spec"])
    except TypeError as fault:
        raise DataError(f"{folder}: no data set: {fault}") from fault
    if spec.digest != manifest["digest"]:
        raise DataError(f"{folder}: manifest.json does not hold together (digest)")
    return spec


def read_shard(path: Path) -> Windows:
    """The windows of one shard. Raises DataError: it cannot be read."""
    try:
        # numpy does not close a file that it cannot read.
        with path.open("rb") as file, np.load(file) as arrays:
            return Windows(*(arrays[f.name] for f in fields(Windows)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as fault:
        raise DataError(f"{path}: damaged or missing: {fault}") from fault


def read_part(folder: Path, part: str, most: int | None = None) -> Windows:
    """All windows of a part, or of its first `most` terrains.

    Raises DataError: the data set is incomplete, damaged, or larger than the free memory.
    """
    spec = read_spec(folder)
    count = spec.terrains[part] if most is None else min(spec.terrains[part], most)
    columns = read_shard(_shard(folder, part, 0)).columns()
    needed, free = count * sum(c.nbytes for c in columns.values()), _free_bytes()
    if needed > 0.8 * free:
        raise DataError(
            f"{folder}: the {part} part takes {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB"
            f" are free; use fewer of its {count} terrains"
        )
    # Filled in place: concatenating would take twice the memory.
    whole = {k: np.empty((count, *c.shape), c.dtype) for k, c in columns.items()}
    for i in range(count):
        path = _shard(folder, part, i)
        for name, values in read_shard(path).columns().items():
            column = columns[name]
            if values.shape != column.shape or values.dtype != column.dtype:
                raise DataError(f"{path}: damaged: {name} is {values.dtype} {values.shape}")
            whole[name][i] = values
    return Windows(**{k: c.reshape(-1, *c.shape[2:]) for k, c in whole.items()})


def _free_bytes() -> float:
    """Memory available without swapping; infinite where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return math.inf
    return next((float(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvail")), math.inf)
