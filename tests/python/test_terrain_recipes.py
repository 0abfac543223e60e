"""Recipes: the laws of rocks and relief, determinism, clearings, and refusals that help."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlnav.terrain import (
    Terrain,
    TerrainError,
    benchmark_class,
    benchmark_recipe,
    canonical,
    generate,
    landforms,
    load,
    parse_class,
    parse_recipe,
    read_recipe,
    recipe_names,
    rocks,
    shipped_recipe,
    write_geotiff,
)
from mlnav.terrain.landforms import Crater, Grid
from mlnav.terrain.recipes import Base, Clearing, Recipe, Relief, Rocks, Unknown

# Golombek's law as the design facts tabulate it: k -> q, and rocks above D per 100 m^2.
DIAMETERS = (0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
GOLOMBEK = {
    0.05: (4.83, (24.0, 8.0, 3.2, 1.4, 0.29, 0.04)),
    0.10: (3.31, (52.6, 21.1, 9.8, 5.0, 1.50, 0.31)),
    0.15: (2.80, (78.9, 33.7, 16.7, 9.0, 3.02, 0.73)),
    0.20: (2.55, (104.0, 45.9, 23.4, 13.0, 4.62, 1.21)),
}
SMALL = Grid((200, 240), 0.1)
SHAPE: dict[str, Any] = {
    "height_ratio": (0.24, 0.5, 0.83),
    "elongation_max": 1.7,
    "burial_max": 0.6,
}


def recipe(**parts: object) -> Recipe:
    return Recipe.model_validate({"size_m": (24.0, 20.0), "resolution_m": 0.1, **parts})


# ---------------------------------------------------------------------------------------- rocks


def area_fraction(diameter_m: np.ndarray | float, k: float) -> np.ndarray:
    """Fraction of ground under rocks of at least this diameter (Golombek & Rapp 1997)."""
    return k * np.exp(-rocks.golombek_q(k) * diameter_m)


@pytest.mark.parametrize("k", GOLOMBEK)
def test_number_density_is_the_tabulated_one(k: float) -> None:
    q, numbers = GOLOMBEK[k]
    assert rocks.golombek_q(k) == pytest.approx(q, abs=0.006)
    computed = 100.0 * rocks.number_density(DIAMETERS, k)
    for value, tabulated in zip(computed, numbers, strict=True):
        # One unit of the last digit printed; 104 has lost its decimals.
        assert value == pytest.approx(tabulated, abs=0.5 if tabulated > 100 else 0.06)


@pytest.mark.parametrize("k", GOLOMBEK)
def test_number_density_integrates_to_the_area_fraction(k: float) -> None:
    d = np.geomspace(0.01, 30.0, 200_000)
    number = -np.diff(rocks.number_density(d, k))
    covered = (number * np.pi / 4.0 * (0.5 * (d[1:] + d[:-1])) ** 2)[::-1].cumsum()[::-1]
    np.testing.assert_allclose(covered[:-50_000], area_fraction(d[:-50_001], k), rtol=1e-3)


@pytest.mark.parametrize("k", GOLOMBEK)
def test_sampled_rocks_follow_the_table(k: float) -> None:
    area_m2 = 40_000.0
    diameters = rocks.sample_diameters(np.random.default_rng(11), k, area_m2, 0.15, 10.0)
    assert diameters.min() >= 0.15
    for d in DIAMETERS:
        expected = float(rocks.number_density(d, k)) * area_m2
        assert abs((diameters > d).sum() - expected) < 4.0 * math.sqrt(expected) + 1.0


def test_no_rocks_at_zero_abundance() -> None:
    assert rocks.sample_diameters(np.random.default_rng(0), 0.0, 1e6, 0.1, 2.0).size == 0


@pytest.mark.parametrize("k", [0.1, 0.2])
def test_rocks_cover_the_ground_that_the_law_says(k: float) -> None:
    field = rocks.scatter(
        np.random.default_rng(5), k=k, size_m=(100.0, 80.0), d_min_m=0.3, d_max_m=2.5, **SHAPE
    )
    cover = (rocks.relief_of(field, (1600, 2000), 0.05) > 0.0).mean()
    nominal = (np.pi / 4.0 * field.diameter_m**2).sum() / (105.0 * 85.0)  # scattered with a margin
    assert cover == pytest.approx(1.0 - math.exp(-nominal), rel=0.03)  # they may overlap
    law = area_fraction(0.3, k) - area_fraction(2.5, k)
    assert nominal == pytest.approx(float(law), rel=0.15)  # few large rocks make much of it


def test_rock_heights_follow_the_ratio() -> None:
    field = rocks.scatter(
        np.random.default_rng(5), k=0.1, size_m=(90.0, 90.0), d_min_m=0.15, d_max_m=2.5, **SHAPE
    )
    ratio = field.height_m / field.diameter_m
    assert ratio.min() >= 0.24
    assert ratio.max() <= 0.83
    assert ratio.mean() == pytest.approx(0.5, abs=0.01)


def one_rock(**changes: float) -> rocks.RockField:
    values = {
        "x_m": 5.0, "y_m": 3.0, "diameter_m": 2.0, "height_m": 0.8, "elongation": 1.0,
        "heading_rad": 0.0, "burial": 0.0,
    } | changes  # fmt: skip
    arrays = {name: np.array([value]) for name, value in values.items()}
    return rocks.RockField(**arrays, facet_rad=np.zeros((1, 0)), facet_drop=np.zeros((1, 0)))


def test_shape_of_one_rock() -> None:
    x, y = Grid((200, 400), 0.025).centres()
    dome = rocks.relief_of(one_rock(), (200, 400), 0.025)
    radius = np.hypot(x - 5.0, y - 3.0)
    np.testing.assert_allclose(dome, 0.8 * np.sqrt(np.maximum(1 - radius**2, 0)), atol=1e-12)

    cap = rocks.relief_of(one_rock(burial=0.6), (200, 400), 0.025)
    assert cap.max() == pytest.approx(0.8, abs=2e-3)  # burial flattens the sides, not the top
    assert (cap <= dome + 1e-12).all()
    np.testing.assert_array_equal(cap > 0, dome > 0)

    turned = rocks.relief_of(
        one_rock(elongation=2.0, heading_rad=math.pi / 2, diameter_m=1.0), (200, 400), 0.025
    )
    rows, columns = np.nonzero(turned)
    assert np.ptp(rows) * 0.025 == pytest.approx(math.sqrt(2.0), abs=0.05)  # long along y
    assert np.ptp(columns) * 0.025 == pytest.approx(math.sqrt(0.5), abs=0.05)
    assert (turned > 0).sum() * 0.025**2 == pytest.approx(math.pi / 4, rel=0.01)


def test_rocks_reach_in_across_the_border_and_do_not_wrap() -> None:
    relief = rocks.relief_of(one_rock(x_m=-0.5, y_m=9.0), (100, 100), 0.1)
    assert relief[:, 0].max() > 0.5
    assert relief[:, 10:].max() == 0.0


# --------------------------------------------------------------------------------------- relief


@pytest.mark.parametrize("hurst", [0.5, 0.7, 0.8])
def test_relief_has_the_asked_structure_function(hurst: float) -> None:
    grid, lags = Grid((520, 480), 0.1), np.array([5, 10, 20, 40])
    squares = np.zeros((2, lags.size))
    for seed in range(16):
        z = landforms.self_affine(
            np.random.default_rng(seed),
            grid,
            rms_1m_m=0.06,
            hurst=hurst,
            wavelength_m=(0.25, 200.0),
        )
        for i, lag in enumerate(lags):
            squares[0, i] += np.mean((z[:, lag:] - z[:, :-lag]) ** 2) / 16
            squares[1, i] += np.mean((z[lag:] - z[:-lag]) ** 2) / 16
    rms_x, rms_y = np.sqrt(squares)
    assert rms_x[1] == pytest.approx(0.06, rel=0.05)
    assert rms_y[1] == pytest.approx(0.06, rel=0.05)
    slope = np.polyfit(np.log(lags), np.log(np.sqrt(squares.mean(axis=0))), 1)[0]
    # The band of wavelengths is finite: smooth below, bounded above, a few hundredths of bias.
    assert slope == pytest.approx(hurst, abs=0.07)


def test_relief_holds_only_the_asked_wavelengths() -> None:
    grid = Grid((256, 256), 0.1)
    z = landforms.self_affine(
        np.random.default_rng(3), grid, rms_1m_m=0.05, hurst=0.7, wavelength_m=(1.6, 30.0)
    )
    window = np.hanning(256)[:, None] * np.hanning(256)[None, :]
    power = np.abs(np.fft.fft2((z - z.mean()) * window)) ** 2
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(256, 0.1)] * 2))
    assert power[frequency > 1 / 1.4].sum() < 1e-4 * power.sum()


def test_relief_is_not_periodic_over_the_map() -> None:
    z = landforms.self_affine(
        np.random.default_rng(3), SMALL, rms_1m_m=0.05, hurst=0.7, wavelength_m=(0.8, 60.0)
    )
    across = np.sqrt(np.mean((z[:, 0] - z[:, -1]) ** 2))
    assert across > 3.0 * np.sqrt(np.mean((z[:, 0] - z[:, 1]) ** 2))


def test_relief_longer_than_the_map_can_hold_is_level() -> None:
    z = landforms.self_affine(
        np.random.default_rng(3), SMALL, rms_1m_m=0.05, hurst=0.7, wavelength_m=(500.0, 900.0)
    )
    assert not z.any()


# ------------------------------------------------------------------------------------ landforms


@pytest.mark.parametrize(("aspect_deg", "step"), [(0, (0, 1)), (90, (1, 0)), (180, (0, -1))])
def test_base_rises_towards_its_aspect(aspect_deg: float, step: tuple[int, int]) -> None:
    z = generate(recipe(base=Base(slope_deg=10, aspect_deg=aspect_deg))).z.astype(float)
    rise = 0.1 * math.tan(math.radians(10))
    np.testing.assert_allclose(np.diff(z, axis=1), step[1] * rise, atol=1e-4)
    np.testing.assert_allclose(np.diff(z, axis=0), step[0] * rise, atol=1e-4)
    assert abs(z.mean()) < 1e-4


def test_crater_profile() -> None:
    grid = Grid((400, 400), 0.1)
    z = landforms.crater_relief(np.random.default_rng(0), grid, [Crater(20, 20, 10, 0.08)])
    x, y = grid.centres()
    radius = np.hypot(x - 20, y - 20)
    floor, crest = z[radius < 0.2].mean(), z[(radius > 4) & (radius < 6)].max()
    assert floor == pytest.approx(-0.8 * (1 - landforms.RIM_SHARE), abs=0.01)
    assert 0.6 * 0.16 < crest < 0.16
    assert np.abs(z[radius > 15]).max() == 0.0
    assert np.abs(np.diff(z, axis=0)).max() < 0.05  # no cliffs


def test_crater_numbers_follow_the_power_law() -> None:
    grid = Grid((1000, 1000), 1.0)
    found = landforms.sample_craters(
        np.random.default_rng(2),
        grid,
        per_km2=25_000.0,
        diameter_m=(4.0, 120.0),
        depth_ratio=(0.05, 0.1),
    )
    diameters = np.array([c.diameter_m for c in found])
    area_km2 = 1.12**2
    for d in (4.0, 6.0, 10.0, 20.0):
        expected = 25_000.0 * (d / 4.0) ** -2.8 * area_km2
        assert abs((diameters > d).sum() - expected) < 4.0 * math.sqrt(expected)
    assert diameters.max() <= 120.0


def test_ripples_have_height_wavelength_and_direction() -> None:
    grid = Grid((300, 300), 0.1)
    z = landforms.ripples(
        np.random.default_rng(1), grid, height_m=0.2, wavelength_m=2.5, direction_rad=0.0,
        cover=1.0, patch_m=15.0,
    )  # fmt: skip
    assert z.min() == pytest.approx(0.0, abs=1e-3)
    assert z.max() == pytest.approx(0.2, abs=1e-3)
    spectrum = (np.abs(np.fft.rfft(z - z.mean(), axis=1)) ** 2).sum(axis=0)
    assert np.fft.rfftfreq(300, 0.1)[spectrum.argmax()] == pytest.approx(0.4, abs=0.07)
    assert np.abs(np.diff(z, axis=1)).mean() > 2.0 * np.abs(np.diff(z, axis=0)).mean()


def test_ripples_come_in_patches() -> None:
    z = landforms.ripples(
        np.random.default_rng(1), Grid((400, 400), 0.1), height_m=0.2, wavelength_m=2.0,
        direction_rad=0.0, cover=0.3, patch_m=10.0,
    )  # fmt: skip
    assert 0.05 < (z > 0.1).mean() / 0.4 < 0.5  # a crest is above half height for about 0.4
    assert (z == 0.0).mean() > 0.3


def test_scarp_and_ditch_have_their_heights_and_end() -> None:
    grid = Grid((600, 600), 0.1)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        step = landforms.scarp(
            rng, grid, height_m=0.5, width_m=0.3, length_m=20.0, back_m=8.0, direction_rad=0.0
        )
        assert step.min() == 0.0
        assert step.max() == pytest.approx(0.5, abs=0.02)
        trough = landforms.ditch(
            rng, grid, depth_m=0.4, width_m=1.6, length_m=20.0, direction_rad=1.0
        )
        assert trough.max() == 0.0
        assert trough.min() == pytest.approx(-0.4, abs=0.02)
        for z in (step, trough):  # a way round is left
            assert (z == 0.0).mean() > 0.4
    x_extent = np.ptp(np.nonzero(step.any(axis=0))) * 0.1
    assert x_extent <= 20.0


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.4])
def test_unknown_fraction_outside_the_clearings(fraction: float) -> None:
    start = Clearing(x_m=5, y_m=10)
    made = generate(recipe(relief=Relief(), unknown=Unknown(fraction=fraction), start=start))
    x, y = Grid(made.shape, 0.1).centres()
    clear = np.hypot(x - 5, y - 10) < 2.5
    assert np.isnan(made.z[~clear]).mean() == pytest.approx(fraction, abs=1e-3)
    assert not np.isnan(made.z[clear]).any()


# ---------------------------------------------------------------------------------- determinism

EVERYTHING = """
size_m: [24, 20]
base: {slope_deg: 5}
relief: {rms_1m_m: 0.05}
rocks: {cfa: 0.1}
craters: {per_km2: 4000}
ripples: [{height_m: 0.1}, {height_m: 0.05, wavelength_m: 1}]
scarps: [{number: 2}]
ditches: [{number: 1}]
unknown: {fraction: 0.05}
start: {x_m: 4, y_m: 10}
goal: {x_m: 20, y_m: 10}
"""


@settings(max_examples=10)
@given(seed=st.integers(0, 2**70))
def test_same_seed_same_bits(seed: int) -> None:
    made = parse_recipe(EVERYTHING)
    assert generate(made, seed).sha256 == generate(made, seed).sha256
    assert generate(made, seed).sha256 != generate(made, seed + 1).sha256


def test_the_bits_do_not_change_unnoticed() -> None:
    """Campaign results are comparable only while the same seed makes the same ground.

    Heights are compared to a millimetre and not by digest: platforms may differ in a last bit.
    """
    z = generate(parse_recipe(EVERYTHING), 1).z
    probed = [
        float(z[iy, ix]) for iy, ix in ((10, 10), (100, 40), (50, 120), (150, 200), (190, 30))
    ]
    assert probed == pytest.approx([1.107, 0.539, 0.231, -0.597, -0.084], abs=1e-3)


def test_the_seed_of_the_recipe_is_the_default() -> None:
    seeded = recipe(relief=Relief(), seed=5)
    assert generate(seeded).sha256 == generate(seeded, 5).sha256 != generate(seeded, 0).sha256
    with pytest.raises(TerrainError, match="negative"):
        generate(seeded, -1)


@pytest.mark.parametrize(
    "extra",
    [
        {"rocks": {"cfa": 0.1}},
        {"craters": {"per_km2": 20000.0}},
        {"ripples": [{}]},
        {"scarps": [{"number": 3}]},
        {"ditches": [{}]},
    ],
)
def test_features_draw_from_streams_of_their_own(extra: dict[str, object]) -> None:
    bare = recipe(relief=Relief())
    level = generate(recipe(**extra), 3).z.astype(float)
    added = generate(recipe(relief=Relief(), **extra), 3).z.astype(float)
    assert np.abs(level).max() > 0.0
    np.testing.assert_allclose(added - generate(bare, 3).z, level, atol=2e-4)


def test_a_further_item_leaves_the_others() -> None:
    one = generate(recipe(scarps=[{"number": 1}]), 3).z
    two = generate(recipe(scarps=[{"number": 2}]), 3).z
    again = generate(recipe(scarps=[{"number": 1}, {"number": 1}]), 3).z
    assert (two - one).min() >= -1e-4  # another ledge only adds ground
    assert (again - one).min() >= -1e-4
    assert (two != again).any()  # and its place comes from another stream


# ------------------------------------------------------------------------- clearings and classes


def test_clearings_are_planes_without_rocks() -> None:
    for seed in range(4):
        made = benchmark_class(15, 0.2, seed)
        x, y = Grid(made.shape, 0.1).centres()
        for place in (made.start_m, made.goal_m):
            assert place is not None
            inside = np.hypot(x - place[0], y - place[1]) < 0.8 * 2.5
            px, py = (np.broadcast_to(c, made.shape)[inside] for c in (x, y))
            basis = np.stack([np.ones(px.size), px, py], axis=1)
            fit, *_ = np.linalg.lstsq(basis, made.z[inside].astype(float))
            assert np.abs(basis @ fit - made.z[inside]).max() < 2e-4
            assert 11.0 < math.degrees(math.atan(math.hypot(*fit[1:]))) < 19.0


def test_rocks_keep_off_clearings_wholly() -> None:
    start = Clearing(x_m=12, y_m=10, radius_m=4.0)
    made = generate(recipe(rocks=Rocks(cfa=0.3), start=start), 1)
    x, y = Grid(made.shape, 0.1).centres()
    distance = np.hypot(x - 12, y - 10)
    assert made.z[distance < 4.0].max() == 0.0
    assert made.z[(distance > 4.0) & (distance < 5.0)].max() > 0.1


def test_campaign_classes() -> None:
    made = benchmark_class(10, 0.07, 4)
    assert made.shape == (520, 520)
    assert made.extent_m == pytest.approx((0, 52, 0, 52))
    assert made.start_m == (8.0, 26.0)
    assert made.goal_m == (44.0, 26.0)
    for spec in ("10/.07", "10/0.07", " 10.0/.07 "):
        assert load(spec, 4).sha256 == made.sha256
    assert load("10/.07").sha256 == benchmark_class(10, 0.07, 0).sha256
    directions = set()
    for seed in range(12):
        gy, gx = np.gradient(generate(benchmark_recipe(20, 0.0), seed).z.astype(float), 0.1)
        assert math.degrees(math.atan(math.hypot(gx.mean(), gy.mean()))) == pytest.approx(20, abs=1)
        directions.add(round(math.atan2(gy.mean(), gx.mean())))
    assert len(directions) > 3  # the aspect is random


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("10/.07", (10.0, 0.07)),
        ("0/0.2", (0.0, 0.2)),
        ("12.5/0", (12.5, 0.0)),
        ("10", None),
        ("/.07", None),
        ("-5/.1", None),
        ("10/.07/x", None),
        ("a/b", None),
    ],
)
def test_parse_class(text: str, parsed: tuple[float, float] | None) -> None:
    assert parse_class(text) == parsed


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("10/.07", ["10/0.07", "10.0/.07", "010/.070", " 10/.07 "]),
        ("15/.10", ["15/0.1", "15/.1", "15/0.100"]),
        ("0/.15", ["0/0.15", "0.0/.15"]),
        ("20/0", ["20/.0", "20/0.00"]),
        ("12.5/.125", ["12.50/0.1250"]),
        ("maps/a.tif", ["./maps/a.tif", "maps//a.tif", "maps/./a.tif"]),
        ("demo", []),
    ],
)
def test_every_terrain_has_one_name(name: str, others: list[str]) -> None:
    assert canonical(name) == name
    assert [canonical(other) for other in others] == [name] * len(others)


def test_classes_out_of_range_are_refused() -> None:
    with pytest.raises(TerrainError, match=r"no class 60/\.10: slope_deg"):
        load("60/.1")
    with pytest.raises(TerrainError, match=r"no class 10/\.50: cfa"):
        load("10/.5")


# --------------------------------------------------------------------------------- bad recipes


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("size_m: [9, 9]\nrock: {cfa: 0.1}", "unknown key 'rock'; did you mean 'rocks'"),
        ("size_m: [9, 9]\nrocks: {cfa: 0.1, dmin: 1}", "rocks: unknown key 'dmin'.*'d_min_m'"),
        ("size_m: [9, 9]\nripples: [{hight_m: 1}]", r"ripples\.0: unknown key.*'height_m'"),
        ("size_m: [9, 9]\nbase: {slop_deg: 1}", "base: .*did you mean 'slope_deg'"),
        ("size_m: [9, 9]\n3: 4", "unknown key '3'"),
        ("size_m: [9, 9]\nzzzzzz: 4", "known: name"),
        ("rocks: {cfa: 0.1}", "size_m: Field required"),
        ("size_m: [9]", "size_m"),
        ("size_m: [9, -9]", "size_m"),
        ("size_m: [9, .nan]", "size_m"),
        ("size_m: [900, 900]", "cells"),
        ("size_m: [0.1, 9]", "cells"),
        ("size_m: [9, 9]\nrocks: {}", "rocks.cfa: Field required"),
        ("size_m: [9, 9]\nrocks: {cfa: 0.5}", "rocks.cfa"),
        ("size_m: [9, 9]\nrocks: {cfa: .1, d_min_m: 1, d_max_m: 0.5}", "d_min_m, d_max_m must"),
        ("size_m: [9, 9]\nrelief: {hurst: rough}", "relief.hurst"),
        ("size_m: [9, 9]\nrelief: {wavelength_min_m: 99}", "wavelength_min_m"),
        ("size_m: [9, 9]\nbase: {aspect_deg: north}", "aspect_deg"),
        ("size_m: [9, 9]\nstart: {x_m: 9, y_m: 4}", "start .*outside"),
        ("size_m: [9, 9]\ncraters: {depth_ratio_min: 0.2}", "depth_ratio_min"),
        ("size_m: [9, 9]\nseed: -1", "seed"),
        ("size_m: [9, 9", "not YAML"),
        ("- size_m", "mapping, got list"),
        ("", "mapping, got NoneType"),
    ],
)
def test_bad_recipes_are_explained(text: str, fault: str) -> None:
    with pytest.raises(TerrainError, match=fault):
        parse_recipe(text, name="bad")


# -------------------------------------------------------------------------------------- library


def test_shipped_recipes_load_by_name() -> None:
    names = recipe_names()
    assert {"demo", "flat", "rocky", "slope", "craters", "ripples", "scarp"} <= set(names)
    for name in names:
        described = shipped_recipe(name)
        assert described.name == name
        assert described.description
        made = load(name)
        assert made.sha256 == generate(described).sha256
        assert made.start_m is not None
        assert made.goal_m is not None
        assert not math.isnan(made.height(*made.start_m))
    assert load("flat", 1).sha256 != load("flat", 2).sha256


def test_demo_is_a_drive_of_45_m() -> None:
    demo = load("demo")
    assert demo.extent_m == pytest.approx((0, 64, 0, 64))
    assert demo.start_m is not None
    assert demo.goal_m is not None
    assert math.dist(demo.start_m, demo.goal_m) == pytest.approx(45.0, abs=0.1)


def test_load_takes_files(tmp_path: Path) -> None:
    text = tmp_path / "mine.yaml"
    text.write_text("size_m: [6, 4]\nrelief: {}\n")
    made = load(text, 3)
    assert made.name == "mine-seed3"
    assert made.sha256 == generate(read_recipe(text), 3).sha256
    write_geotiff(tmp_path / "mine.tif", made)
    back: Terrain = load(str(tmp_path / "mine.tif"))
    assert back.sha256 == made.sha256
    assert back.name == made.name


def test_load_says_what_it_tried() -> None:
    with pytest.raises(TerrainError, match=r"cannot load terrain 'deno'.*did you mean 'demo'"):
        load("deno")
    with pytest.raises(TerrainError, match=r"no such file"):
        load("nowhere.tif")
    with pytest.raises(TerrainError, match=r"nowhere\.yaml: cannot read"):
        load("nowhere.yaml")
    with pytest.raises(TerrainError, match="known: craters, demo"):
        load("")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("size_m: [010, 12]", "010 would be read as 8"),
        ("resolution_m: yes", "yes would be read as true"),
        ("base: {slope_deg: true}", "slope_deg is a number"),
        ("base: {slope_deg: 1:30}", "1:30 would be read as 90"),
    ],
)
def test_numbers_that_yaml_reads_as_something_else_are_refused(text: str, told: str) -> None:
    with pytest.raises(TerrainError, match=told):
        parse_recipe(text)
