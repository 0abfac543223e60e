"""Terrains, starts and goals of trials."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlnav.campaign.definition import checked_definition
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.sim import SimError, drawn_endpoints, screen
from mlnav.terrain import Reading, Terrain, TerrainError, load, read_geotiff, write_geotiff
from mlnav.trials.scenarios import Scenario, TerrainSpec, labels_of, scenario_of

BASE = Config().replaced(checker="fixed_box", limits="enav_like")

RECIPE = """\
size_m: [16, 12]
relief: {rms_1m_m: 0.05}
rocks: {cfa: 0.05}
start: {x_m: 4, y_m: 6}
goal: {x_m: 11, y_m: 6}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "short.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def rolling(tmp_path_factory) -> Path:
    """A GeoTIFF of 24 x 20 m with a wall nearly across it, and a hole."""
    rng = np.random.default_rng(3)
    z = 0.02 * rng.normal(size=(200, 240))
    z[:150, 110:116] = 2.0
    z[20:40, 20:40] = np.nan
    path = tmp_path_factory.mktemp("maps") / "rolling.tif"
    write_geotiff(path, Terrain(z, 0.1, (100.05, -49.95), name="rolling"))
    return path


def scenarios(path: Path, numbers: Any, seed: int = 1, **settings: Any) -> list[Scenario]:
    """Of trials of a campaign."""
    definition = checked_definition(
        {
            "name": "x",
            "seed": seed,
            "terrains": [{"terrain": str(path), **settings}],
            "contenders": ["none"],
            "config": BASE.model_dump(mode="json"),
        }
    )
    return [trial.scenario() for trial in definition.trials_of(numbers)]


def test_terrains_are_named_shortly() -> None:
    specs = [
        TerrainSpec(terrain=t, cfa=cfa)
        for t, cfa in (
            ("maps/rolling.tif", 0.0), ("maps/rolling.tif", 0.05), ("./maps//rolling.tif", 0.1),
            ("10/0.07", 0.0), ("here/short.yaml", 0.0), ("there/short.yaml", 0.0), ("demo", 0.0),
        )
    ]  # fmt: skip
    assert labels_of(specs) == [
        "rolling", "rolling +.05", "rolling +.10", "10/.07", "here/short.yaml", "there/short.yaml",
        "demo",
    ]  # fmt: skip
    assert [s.is_map for s in specs] == [True] * 3 + [False] * 4


@pytest.mark.parametrize(
    "settings", [{"cfa": 0.1}, {"size_m": 20.0}, {"band": 2}, {"nodata": [7.0]}]
)
def test_settings_of_maps_are_refused_elsewhere(settings) -> None:
    assert TerrainSpec(terrain="x.tif", **settings).is_map
    with pytest.raises(ValueError, match=r"10/\.07: cfa, size_m, .* are of GeoTIFFs"):
        TerrainSpec(terrain="10/.07", **settings)


def test_recipes_are_read_in_one_way(short) -> None:
    with pytest.raises(TerrainError, match=r"short\.yaml: band, nodata .* of GeoTIFFs"):
        load(short, reading=Reading(nodata=(7.0,)))


def test_a_trial_of_a_recipe_has_its_own_terrain_start_and_goal(short) -> None:
    spec, common = TerrainSpec(terrain=str(short)), BASE.to_yaml()
    first, second, later = (scenario_of(spec, s, key, common)
                            for s, key in ((5, (0,)), (6, (0,)), (6, (1,))))  # fmt: skip
    assert first.terrain.sha256 != second.terrain.sha256 == later.terrain.sha256
    assert (first.start, first.goal) == ((4.0, 6.0), (11.0, 6.0))
    zero, one, other_seed = (
        s.terrain.sha256 for seed in (1, 2) for s in scenarios(short, range(3 - seed), seed)
    )
    assert len({zero, one, other_seed}) == 3


def test_pairs_of_a_map_are_safe_apart_and_joined(rolling) -> None:
    terrain = read_geotiff(rolling)
    screened = screen(terrain, BASE)
    settle = BASE.replaced(checker="settle").build_checker(terrain.z.size)
    settle.set_map(HeightMap.of(terrain).grid)
    drawn = scenarios(rolling, range(8))
    for scenario in drawn:
        (ax, ay), (bx, by) = scenario.start, scenario.goal
        assert np.hypot(bx - ax, by - ay) >= 0.6 * screened.extent_m
        heading = np.arctan2(by - ay, bx - ax)
        assert (settle.reasons(np.array([[ax, ay, heading], [bx, by, heading]])) == 0).all()
        assert screened.joined(scenario.start, scenario.goal)
    assert len({s.start for s in drawn}) > 4
    scenario_of.cache_clear()
    (again,) = scenarios(rolling, [3])
    assert (again.start, again.goal) == (drawn[3].start, drawn[3].goal)


def test_size_keeps_pairs_in_the_middle(rolling) -> None:
    middle = np.array([112.0, -40.0])
    for scenario in scenarios(rolling, range(4), size_m=14.0):
        assert np.abs(np.array([scenario.start, scenario.goal]) - middle).max() <= 7.0
        assert np.hypot(*np.subtract(scenario.goal, scenario.start)) >= 0.6 * 14.0 - 1e-9


def test_rocky_pairs_are_clear_about_their_ends_and_joined(rolling) -> None:
    bare = read_geotiff(rolling)
    (scenario,) = scenarios(rolling, [2], cfa=0.1)
    raised = np.nan_to_num(scenario.terrain.z - bare.z)
    assert raised.max() > 0.1
    (ny, nx), (ox, oy) = bare.shape, bare.origin_m
    x, y = np.meshgrid(ox + 0.1 * np.arange(nx), oy + 0.1 * np.arange(ny))
    for px, py in (scenario.start, scenario.goal):
        assert raised[np.hypot(x - px, y - py) < 2.5].max() == 0.0
    assert screen(scenario.terrain, BASE).joined(scenario.start, scenario.goal)


def test_a_wall_parts_the_screen(monkeypatch) -> None:
    z = np.zeros((160, 240), np.float32)
    z[:, 118:124] = 3.0
    terrain = Terrain(z, 0.1, (0.05, 0.05))
    screened = screen(terrain, BASE)
    assert screened.joined((4.0, 4.0), (4.0, 12.0))
    assert not screened.joined((4.0, 8.0), (20.0, 8.0))
    assert not screened.joined((12.0, 8.0), (12.0, 8.0))
    monkeypatch.setattr("mlnav.sim.endpoints.APART_SHARE", 0.8)
    with pytest.raises(SimError, match="hang together"):
        drawn_endpoints(terrain, BASE, np.random.default_rng(0), screened)


def test_coarse_and_forbidden_ground_is_left_out() -> None:
    z = np.zeros((160, 240), np.float32)
    spacing = np.full(z.shape, 0.15, np.float32)
    spacing[:, 120:] = 1.0
    fine = screen(Terrain(z, 0.1, (0.05, 0.05), layers={"source_mesh_spacing_m": spacing}), BASE)
    assert fine.group[:, fine.x_m < 9.0].any()
    assert not fine.group[:, fine.x_m > 12.0].any()
    zone = [[0.0, 0.0], [12.0, 0.0], [12.0, 16.0], [0.0, 16.0]]
    zoned = screen(Terrain(z, 0.1, (0.05, 0.05)), Config(**{**dict(BASE), "keep_out": [zone]}))
    assert not zoned.group[:, zoned.x_m < 12.0].any()
    assert zoned.group[:, zoned.x_m > 13.0].any()
    with pytest.raises(SimError, match="rover-scale"):
        bad = np.full(z.shape, 1.0, np.float32)
        screen(Terrain(z, 0.1, layers={"source_mesh_spacing_m": bad}), BASE)
