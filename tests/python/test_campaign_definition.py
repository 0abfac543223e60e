import numpy as np
import pytest
from campaign_cases import tiny, tiny_yaml

from mlnav.campaign import CampaignError, load_definition
from mlnav.campaign.definition import check_available, parse_definition
from mlnav.terrain import AS_DECLARED, Reading, Terrain, write_geotiff

BASE = {"name": "x", "terrains": ["10/.07"], "contenders": ["none"]}


def text(**changes: object) -> str:
    import yaml

    return yaml.safe_dump({k: v for k, v in (BASE | changes).items() if v is not None})


@pytest.mark.parametrize("name", ["smoke", "heuristics", "bullet"])
def test_shipped_definitions_are_valid(name: str) -> None:
    definition = load_definition(name)
    assert definition.name == name
    assert parse_definition(definition.to_yaml()) == definition
    assert definition.description


def test_the_one_for_real_maps_asks_for_them(tmp_path) -> None:
    with pytest.raises(CampaignError, match=r"campaign real: no terrains: .*--terrain"):
        load_definition("real")
    write_geotiff(tmp_path / "map.tif", Terrain(np.zeros((300, 300)), 0.1))
    definition = load_definition("real", terrains=[str(tmp_path / "map.tif")])
    assert definition.labels == ["map"]
    check_available(definition)


def test_terrains_come_from_the_list_and_the_grid() -> None:
    definition = parse_definition(text(grid={"slope_deg": [0, 5], "cfa": [0.1]}))
    assert definition.labels == ["10/.07", "0/.10", "5/.10"]


def test_a_class_has_the_same_trials_however_it_is_written() -> None:
    first, *others = (
        parse_definition(text(terrains=[name])) for name in ("10/.10", "10/0.1", "10.0/.100")
    )
    assert all(other == first for other in others)
    grid = text(terrains=[], grid={"slope_deg": [10], "cfa": [0.1]})
    for definition in (*others, parse_definition(grid)):
        for a, b in zip(first.trials_of([0, 1]), definition.trials_of([0, 1]), strict=True):
            assert a.identity == b.identity
            assert a.terrain_seed == b.terrain_seed


def test_names_of_classes_give_the_seeds_that_they_always_gave() -> None:
    definition = parse_definition(text(seed=3, terrains=["15/.10", "0/.15", "10/.07"]))
    seeds = {t.label: (t.terrain_seed, t.run_seed) for t in definition.trials_of([4])}
    assert seeds == {
        "15/.10": (1592309419, 4091245746),
        "0/.15": (3335305872, 108082489),
        "10/.07": (3330777142, 15172529),
    }


def test_values_are_set_and_terrains_replaced(tmp_path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text(grid={"slope_deg": [0], "cfa": [0.1]}))
    definition = load_definition(
        path,
        terrains=["5/.05"],
        settings=["trials=7", "config.planner.commit_length_m=0.5", "stop.width=0.1"],
    )
    assert definition.labels == ["5/.05"]
    assert (definition.trials, definition.stop.width) == (7, 0.1)
    assert definition.base.planner.commit_length_m == 0.5
    with pytest.raises(CampaignError, match="unknown key 'trails'; did you mean 'trials'"):
        load_definition(path, settings=["trails=7"])
    with pytest.raises(CampaignError, match=r"path.to.key=value"):
        load_definition(path, settings=["trials"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trial": 3}, "unknown key 'trial'; did you mean 'trials'"),
        ({"name": None}, "name: Field required"),
        ({"trials": 0}, "trials: is 0, must be at least 1"),
        ({"trials": "many"}, "trials: .* integer"),
        ({"seed": -1}, "seed"),
        ({"wall_s": 0}, "wall_s"),
        ({"memory_mb": 3}, "memory_mb: .* 256"),
        ({"terrains": []}, "no terrains"),
        ({"terrains": ["10/.07", "10/.07"]}, "terrain given twice: 10/.07"),
        ({"terrains": ["10/.10", "10/0.1"]}, "terrain given twice: 10/.10"),
        ({"terrains": ["10/.10"], "grid": {"slope_deg": [10], "cfa": [0.1]}}, "twice: 10/.10"),
        ({"terrains": [{"terran": "10/.07"}]}, "terrains.0: unknown key 'terran'"),
        ({"terrains": [{"terrain": "10/.07", "cfa": 0.1}]}, "cfa, size_m, .* are of GeoTIFFs"),
        ({"terrains": [{"terrain": "10/.07", "nodata": [0]}]}, "nodata .* are of GeoTIFFs"),
        ({"terrains": [{"terrain": "a.tif", "nodata": [".inf"]}]}, "nodata.0"),
        ({"terrains": [{"terrain": "a.tif", "band": 0}]}, "band"),
        ({"grid": {"slope_deg": [0]}}, "grid.cfa: Field required"),
        ({"contenders": []}, "contenders"),
        ({"contenders": ["none", "none"]}, "contender given twice: none"),
        ({"contenders": ["nope"]}, "contender nope: heuristic: no heuristic 'nope'"),
        ({"contenders": [{"heuristic": "sobel"}]}, "contenders.0: needs a name"),
        ({"contenders": [{"name": "a/b"}]}, "letters, digits"),
        ({"contenders": [{"name": "a", "planner.comit_length_m": 1}]}, "'commit_length_m'"),
        ({"config": {"checkr": "verified"}}, "unknown key 'checkr'"),
        ({"config": {"checker": "verifed"}}, "did you mean 'verified'"),
        ({"stop": {"width": 0}}, "stop.width"),
        ({"stop": {"figure": "succes", "width": 0.1}}, "stop.figure"),
        ({"dispersions": {"world.friction": {"uniform": [0, 1]}}}, "unknown key 'friction'"),
        ({"dispersions": {"sensor.half_width_m": {"unform": [8, 9]}}}, "must be {uniform"),
        ({"dispersions": {"sensor.half_width_m": 9}}, "must be {uniform"),
        ({"dispersions": {"sensor.half_width_m": {"uniform": [9, 8]}}}, "9 is more than 8"),
        ({"dispersions": {"sensor.half_width_m": {"uniform": [-1, 20]}}}, "must be more than 0"),
        ({"dispersions": {"sensor.half_width_m": {"normal": [2, 1]}}}, "must be more than 0"),
        ({"dispersions": {"sensor.half_width_m": {"normal": [2, -1]}}}, "normal.1"),
        ({"dispersions": {"sensor.half_width_m": {"choice": []}}}, "choice"),
        ({"dispersions": {"sensor.half_width_m": {"choice": [8, "wide"]}}}, "number"),
    ],
)
def test_what_is_wrong_is_named(changes, words) -> None:
    with pytest.raises(CampaignError, match=words):
        parse_definition(text(**changes), "c.yaml")


def test_texts_that_are_none() -> None:
    for bad in ("a: [", "- 1\n", "name: x\nname: y\n", ""):
        with pytest.raises(CampaignError):
            parse_definition(bad, "c.yaml")
    with pytest.raises(CampaignError, match=r"no campaign 'smokes': .* smoke"):
        load_definition("smokes")
    with pytest.raises(CampaignError, match=r"nowhere.yaml: cannot be read"):
        load_definition("nowhere.yaml")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terrains": ["nowhere.tif"]}, "nowhere.tif"),
        ({"terrains": ["nowhere.yaml"]}, "nowhere.yaml"),
        ({"terrains": ["flatt"]}, "flat"),
        ({"terrains": ["99/.07"]}, "no class 99/.07"),
        ({"contenders": ["network"], "config": {"checker": "settle"}}, "no model 'auto'"),
        ({"contenders": [{"name": "n", "heuristic": {"name": "network", "model": "x"}}]}, "'x'"),
    ],
)
def test_what_is_missing_is_told_before_anything_runs(changes, words) -> None:
    with pytest.raises(CampaignError, match=words):
        check_available(parse_definition(text(**changes)))


def test_a_model_with_another_checksum_is_refused(tmp_path) -> None:
    model = damaged_model(tmp_path)
    contender = {"name": "n", "heuristic": {"name": "network", "model": str(model)}}
    definition = parse_definition(text(contenders=["none", contender]))
    with pytest.raises(CampaignError, match=r"contender n: .*checksum"):
        check_available(definition)


def damaged_model(folder):
    import shutil

    from mlnav.io import shipped_folder

    model = folder / "model"
    shutil.copytree(str(shipped_folder("models") / "verified-flight_like"), model)
    with open(model / "model.onnx", "ab") as file:
        file.write(b"x")
    return model


def test_contenders_share_everything_but_what_is_theirs(tmp_path) -> None:
    definition = tiny(tmp_path, dispersions={"sensor.half_width_m": {"uniform": [10, 14]}})
    for number in range(2):
        none, sobel = list(definition.trials_of([number]))[:2]
        assert (none.contender, sobel.contender) == ("none", "sobel")
        assert (none.terrain_seed, none.run_seed) == (sobel.terrain_seed, sobel.run_seed)
        assert none.drawn == sobel.drawn
        assert none.config.sensor == sobel.config.sensor
        assert none.config.heuristic != sobel.config.heuristic
        assert none.scenario() is sobel.scenario()


def test_further_terrains_and_contenders_leave_trials_as_they_are(tmp_path) -> None:
    few = list(tiny(tmp_path).trials_of([1]))
    more = tiny(tmp_path, trials=9, contenders=["failures", "none", "sobel"])
    more = more.model_copy(update={"terrains": more.terrains[::-1]})
    assert {t.identity for t in few} <= {t.identity for t in more.trials_of([1])}


def test_draws_differ_by_trial_and_ground(tmp_path) -> None:
    spreads = {
        "sensor.half_width_m": {"uniform": [10, 14]},
        "world.settle_step_m": {"normal": [0.1, 0.01]},
        "planner.commit_length_m": {"choice": [0.5, 1.0]},
    }
    definition = tiny(tmp_path, dispersions=spreads)
    drawn = [t.drawn for t in definition.trials_of(range(40)) if t.contender == "none"]
    widths = [d["sensor.half_width_m"] for d in drawn]
    assert len(set(widths)) == 80
    assert 10 <= min(widths) < 10.5
    assert 13.5 < max(widths) <= 14
    steps = np.array([d["world.settle_step_m"] for d in drawn])
    assert 0.07 <= steps.min() < steps.max() <= 0.13
    assert 0.005 < steps.std() < 0.015
    assert {d["planner.commit_length_m"] for d in drawn} == {0.5, 1.0}
    assert [t.drawn for t in definition.trials_of([3])] == [
        t.drawn for t in definition.trials_of([3])
    ]


def test_yaml_reads_back(tmp_path) -> None:
    definition = parse_definition(
        tiny_yaml(
            tmp_path,
            stop={"width": 0.2},
            dispersions={"sensor.half_width_m": {"choice": [8, 9]}},
            contenders=["none", {"name": "short", "planner.commit_length_m": 0.5}],
        )
    )
    assert parse_definition(definition.to_yaml()) == definition


@pytest.mark.parametrize(
    ("dispersions", "told"),
    [
        ({"planner.memory_poses": {"uniform": [100, 200]}}, r"memory_poses.*integer.*choice"),
        ({"planner.memory_poses": {"normal": [100, 10]}}, r"memory_poses.*integer.*choice"),
        ({"planner.visit_radius_m": {"uniform": [5, 20]}}, r"visit_radius_m: is 20"),
        ({"planner.commit_length_m": {"uniform": [0.5, 1.0]}}, r"commit_length_m.*whole number"),
        # Each fits alone.
        (
            {
                "planner.commit_length_m": {"choice": [1.0, 4.0]},
                "planner.tree.arc_length_m": {"choice": [3.0, 4.0]},
            },
            "commit_length_m",
        ),
    ],
)
def test_every_value_that_may_be_drawn_has_to_fit(tmp_path, dispersions, told) -> None:
    with pytest.raises(CampaignError, match=told):
        tiny(tmp_path, dispersions=dispersions)


def test_small_numbers_are_drawn_as_numbers(tmp_path) -> None:
    spread = {"checker.enclosed_m": {"uniform": [1e-6, 2e-6]}}
    config = {"checker": "verified", "limits": "flight_like"}
    definition = tiny(tmp_path, dispersions=spread, config=config)
    for trial in definition.trials_of([0]):
        drawn = trial.drawn["checker.enclosed_m"]
        assert trial.config.checker.enclosed_m == drawn
        assert 1e-6 <= drawn <= 2e-6


def test_how_maps_are_read_is_part_of_the_definition(tmp_path) -> None:
    reading = Reading(1, (0.0,), "ft")
    names = [str(tmp_path / "map.tif"), "10/.07"]
    definition = load_definition("real", terrains=names, reading=reading)
    assert [t.reading for t in definition.all_terrains] == [reading, AS_DECLARED]
    assert parse_definition(definition.to_yaml()) == definition
    plain, *_ = load_definition("real", terrains=names).trials_of([0])
    trial, *_ = definition.trials_of([0])
    assert trial.identity != plain.identity
    assert trial.terrain_seed == plain.terrain_seed
    for terrains in (["10/.07"], []):
        with pytest.raises(CampaignError, match="of GeoTIFFs, and --terrain names none"):
            load_definition("smoke", terrains=terrains, reading=reading)


def test_coarse_cells_are_told_before_anything_runs(tmp_path) -> None:
    write_geotiff(tmp_path / "map.tif", Terrain(np.zeros((90, 90)), 0.5))
    terrains = [str(tmp_path / "map.tif")]
    with pytest.raises(CampaignError, match=r"cells of 0\.5 m.*--allow-coarse"):
        check_available(load_definition("real", terrains=terrains))
    insisting = ["config.traverse.allow_coarse_cells=true"]
    check_available(load_definition("real", terrains=terrains, settings=insisting))
