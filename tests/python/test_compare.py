"""`mlnav compare` and `mlnav bench traverses`: campaigns defined on the command line."""

import csv
import functools
import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaign_cases import interrupted_at_4
from made_runs import analysed, made_trial
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import mlnav.campaign
from mlnav.campaign.definition import CampaignError, check_available
from mlnav.campaign.store import Store
from mlnav.cli import app
from mlnav.cli import common as common_module
from mlnav.cli import compare as compare_module
from mlnav.cli.common import RefusedError
from mlnav.cli.compare import contenders_of, definition_of, print_analysis
from mlnav.config import Config, ConfigError
from mlnav.terrain import Reading, Terrain, write_geotiff

BASE = Config().replaced(checker="fixed_box", limits="enav_like")

SHORT = """\
size_m: [16, 12]
relief: {rms_1m_m: 0.05}
rocks: {cfa: 0.05}
start: {x_m: 4, y_m: 6}
goal: {x_m: 11, y_m: 6}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "short.yaml"
    path.write_text(SHORT)
    return path


@pytest.fixture(scope="module")
def rolling(tmp_path_factory) -> Path:
    """A GeoTIFF of 20 m."""
    z = 0.02 * np.random.default_rng(3).normal(size=(200, 200))
    path = tmp_path_factory.mktemp("maps") / "rolling.tif"
    write_geotiff(path, Terrain(z, 0.1, (100.05, -49.95), name="rolling"))
    return path


# -------------------------------------------------------------------------------------- contenders


def contenders(base: Config = BASE, **names: list[str]) -> dict[str, Config]:
    """Their configurations by name."""
    parts = {"planner": ["enav"], "heuristic": ["none"], "sensor": ["truth"], **names}
    made = contenders_of(base, **parts)
    return definition_of(base, made, ["10/.07"], name="x", trials=1, seed=0).configs


def test_contenders_are_named_by_what_differs() -> None:
    assert list(contenders(heuristic=["none", "sobel"])) == ["none", "sobel"]
    weights = contenders(heuristic=["sobel", "sobel:weight_per_m=20;to_go_fraction=0"])
    assert list(weights) == ["sobel", "sobel-weight_per_m-20-to_go_fraction-0"]
    first, second = weights.values()
    assert (first.heuristic.weight_per_m, second.heuristic.weight_per_m) == (40.0, 20.0)
    assert second.heuristic.to_go_fraction == 0.0
    steps = contenders(planner=["enav", "enav:commit_length_m=0.5"])
    assert list(steps) == ["enav", "enav-commit_length_m-0.5"]
    assert list(steps.values())[1].planner.commit_length_m == 0.5
    seen = contenders(heuristic=["none", "sobel"], sensor=["truth", "stereo:dropout=0"])
    assert list(seen) == [
        "none+truth", "none+stereo-dropout-0", "sobel+truth", "sobel+stereo-dropout-0",
    ]  # fmt: skip
    assert seen["sobel+stereo-dropout-0"].sensor.dropout == 0.0


def test_contenders_keep_what_the_configuration_says_of_them() -> None:
    base = BASE.replaced(["heuristic.weight_per_m=7"], heuristic="sobel").replaced(
        ["planner.commit_length_m=0.5", "world.friction=0.4", "traverse.ace_budget=900"],
        world="bullet",
    )
    none, sobel = contenders(base, heuristic=["none", "sobel"]).values()
    assert sobel == base
    assert none == base.replaced(heuristic="none")


@pytest.mark.parametrize(
    ("names", "kind", "told"),
    [
        ({"heuristic": ["none", "none"]}, CampaignError, "contender given twice: none"),
        ({"heuristic": ["none", "sobbel"]}, ConfigError, "did you mean 'sobel'"),
        ({"heuristic": ["none", ""]}, RefusedError, "heuristic: an empty name"),
        ({"planner": ["enva"]}, ConfigError, "did you mean 'enav'"),
        ({"heuristic": ["none", "sobel:wieght_per_m=3"]}, ConfigError, "weight_per_m"),
        ({"heuristic": ["none", "sobel:weight_per_m=-1"]}, ConfigError, "weight_per_m"),
    ],
)
def test_bad_contenders_are_refused(names, kind, told) -> None:
    with pytest.raises(kind, match=told):
        contenders(**names)


# ---------------------------------------------------------------------------------------- terrains

TWO = contenders_of(BASE, planner=["enav"], heuristic=["none", "sobel"], sensor=["truth"])


def defined(*terrains: object, **how: Any):
    return definition_of(BASE, TWO, [str(t) for t in terrains], name="x", trials=2, seed=0, **how)


def test_each_geotiff_is_driven_with_each_rock_cover(rolling, short) -> None:
    found = defined(rolling, "10/0.07", short, covers=(0.0, 0.05, 0.1), size_m=16.0)
    assert found.labels == ["rolling", "rolling +.05", "rolling +.10", "10/.07", "short"]
    assert [t.cfa for t in found.all_terrains] == [0.0, 0.05, 0.1, 0.0, 0.0]
    assert [t.size_m for t in found.all_terrains] == [16.0, 16.0, 16.0, None, None]
    check_available(found)


def test_only_geotiffs_are_read_in_some_way(rolling, short) -> None:
    how = Reading(nodata=(7.0,))
    found = defined(rolling, short, covers=(0.0, 0.1), how=how).all_terrains
    assert [t.reading == how for t in found] == [True, True, False]
    with pytest.raises(RefusedError, match="of GeoTIFFs, and none is given"):
        defined(short, how=how)


def test_bad_terrains_are_refused(rolling, tmp_path) -> None:
    for specs, covers, kind, told in (
        (["10/.07", "10/.07"], (0.0,), CampaignError, "given twice"),
        (["10/.10", "10/0.1"], (0.0,), CampaignError, "given twice: 10/.10"),
        (["10/.07"], (0.05,), RefusedError, "GeoTIFF"),
        ([str(rolling)], (0.5,), CampaignError, "cfa.*0.3"),
        ([str(rolling)], (0.05, 0.05), CampaignError, r"given twice: rolling \+.05"),
        (["nowhere"], (0.0,), CampaignError, "nowhere"),
        (["10/.07", "80/.07"], (0.0,), CampaignError, "80"),
        ([str(tmp_path / "none.tif")], (0.0,), CampaignError, "none.tif"),
    ):
        with pytest.raises(kind, match=told):
            check_available(defined(*specs, covers=covers))


def test_the_shared_configuration_does_not_depend_on_contenders() -> None:
    """Starts and goals on maps follow from it."""
    one = definition_of(BASE, TWO[:1], ["10/.07"], name="x", trials=2, seed=0)
    other = BASE.replaced(heuristic="sobel", sensor="stereo")
    assert definition_of(other, TWO, ["10/.07"], name="x", trials=2, seed=0).base == one.base


# ---------------------------------------------------------------------------------------- command


def run(*args: object, command: tuple[str, ...] = ("compare",), code: int = 0):
    result = CliRunner().invoke(app, [*command, *(str(a) for a in args)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    return result


def refused(*args: object, **how: Any) -> str:
    result = run(*args, code=2, **how)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


SETUP = ("--checker", "fixed_box", "--limits", "enav_like", "--workers", 0)
ONE = (*SETUP, "--pairs", 1, "--seed", 2)
DRAWN = (*ONE, "--size", 16)


@pytest.fixture(scope="module")
def commanded(short, rolling, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "made"
    run("--terrain", short, rolling, *DRAWN, "--same-state", 3, "--out", out)
    return out


@pytest.fixture
def copied(commanded, tmp_path) -> Path:
    return shutil.copytree(commanded, tmp_path / "copied")


def when(folder: Path) -> dict[tuple[str, int, str], Any]:
    """When each trial was recorded."""
    rows = Store(folder).rows(("terrain", "trial", "contender", "recorded_utc"))
    return {(r["terrain"], r["trial"], r["contender"]): r["recorded_utc"] for r in rows}


def test_the_folder_is_a_campaign_with_its_report_and_pictures(commanded) -> None:
    store = Store(commanded)
    assert list(when(commanded)) == [
        ("short", 0, "none"), ("short", 0, "sobel"), ("rolling", 0, "none"), ("rolling", 0, "sobel")
    ]  # fmt: skip
    for none, sobel in zip(*[iter(store.trials().to_pylist())] * 2, strict=True):
        shared = ("terrain_sha256", "terrain_seed", "run_seed", "start_x_m", "goal_y_m")
        assert all(none[c] == sobel[c] for c in shared)
        assert none["inferences"] == 0 < sobel["inferences"]
    told = json.loads((commanded / "report/report.json").read_text())
    assert [b["label"] for b in told["terrains"]] == ["short", "rolling"]
    with open(commanded / "report/summary.csv") as file:
        assert len(list(csv.DictReader(file))) == 6
    for picture in ("compare.png", "states/short.png", "states/rolling.png"):
        with Image.open(commanded / picture) as image:
            assert min(image.size) > 600
    assert len(list((commanded / "states").iterdir())) == 2


def test_json_is_one_object(commanded, short, rolling) -> None:
    again = ("-t", f"{short},{rolling}", *DRAWN, "--out", commanded, "--no-pictures", "--json")
    told = json.loads(run(*again, "--same-state", 3).stdout)
    assert told.pop("out") == str(commanded)
    states = json.loads((commanded / "same_states.json").read_text())
    assert told.pop("same_states") == states["contenders"]
    assert told == json.loads((commanded / "report/report.json").read_text())
    assert told["overall"]["against"]["sobel"]["metrics"]["evaluations"]["estimate"]["value"] > 0
    assert "same_states" not in json.loads(run(*again).stdout)


def test_the_screen_has_two_tables(commanded, short, rolling) -> None:
    text = run("-t", short, rolling, *DRAWN, "-o", commanded, "--no-pictures", "--same-state",
               3).stdout  # fmt: skip
    rows = [line for line in text.splitlines() if line.startswith(("none ", "sobel "))]
    assert len(rows) == 12  # endings and effort of two terrains and of all
    assert "10 ms" in text
    assert "times fewer from the same states, without memory: sobel " in text
    assert text.splitlines()[-1] == f"report: {commanded}/report/report.html"


def test_help_has_examples_and_exit_codes() -> None:
    text = run("--help").stdout
    assert "Examples" in text
    assert "130" in text
    assert "Examples" in run("--help", command=("bench", "traverses")).stdout


def test_a_folder_is_gone_on_with(copied, short, rolling) -> None:
    before = when(copied)
    fixed = (*ONE, "--out", copied, "--no-pictures")
    both = ("-t", short, rolling, "--size", 16)
    run(*both, *fixed)
    assert when(copied) == before  # the same command: nothing is left to run
    run(*both, *fixed, "--pairs", 2)
    more = when(copied)
    assert len(more) == 8
    assert {k: v for k, v in more.items() if k in before} == before
    # Other terrains and contenders join those that are there.
    run("-t", "0/.02", *fixed, "--heuristics", "failures,none")
    most = when(copied)
    definition = Store(copied).definition
    assert definition.names == ["failures", "none", "sobel"]
    assert definition.labels == ["0/.02", "short", "rolling"]
    assert definition.trials == 2
    assert len(most) == 18
    assert {k: v for k, v in most.items() if k in more} == more


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--seed", 3), "differ in their seed"),
        (("--ace-budget", 50), "differ in their config"),
        (("--set", "sensor.half_width_m=9"), "contender none of .* is another one"),
        (("--set", "heuristic.weight_per_m=9", "--heuristics", "sobel,none", "--set",
          "heuristic.name=sobel"), "contender sobel of .* is another one"),
    ],
)  # fmt: skip
def test_a_folder_of_something_else_is_refused(commanded, short, rolling, args, told) -> None:
    before = (commanded / "campaign.yaml").read_bytes()
    message = refused("-t", short, rolling, *DRAWN, "--out", commanded, *args)
    assert re.search(told, message), message
    assert (commanded / "campaign.yaml").read_bytes() == before


def test_a_map_in_another_square_or_reading_is_refused(commanded, rolling) -> None:
    for args in (("--size", 15), ("--nodata", 7)):
        message = refused("-t", rolling, *DRAWN, *args, "--out", commanded)
        assert "terrain rolling of" in message and "is another one" in message


def test_results_of_other_code_are_kept_if_one_says_so(copied, short, monkeypatch) -> None:
    before = when(copied)
    monkeypatch.setattr("mlnav.trials.trial.code_digest", lambda: "0ther")
    again = ("-t", short, *ONE, "-o", copied, "--no-pictures")
    assert "go on with --keep-old" in refused(*again)
    told = json.loads(run(*again, "--keep-old", "--json").stdout)
    assert when(copied) == before
    assert len(told["codes"]) == 1


def test_force_starts_anew(copied, short) -> None:
    kept = copied / "notes.txt"
    kept.touch()
    run("-t", short, *ONE, "--seed", 5, "-o", copied, "--no-pictures", "--force")
    store = Store(copied)
    assert (store.definition.seed, store.definition.labels) == (5, ["short"])
    assert len(when(copied)) == 2
    assert kept.exists()
    # Nothing is left that was made of what is gone.
    assert not any((copied / name).exists() for name in ("same_states.json", "compare.png"))
    assert not list((copied / "states").iterdir())


def test_ctrl_c_says_how_to_go_on(short, tmp_path, monkeypatch, ctrl_c) -> None:
    whole = mlnav.campaign.run
    stopped = functools.partial(whole, run_one=interrupted_at_4)
    monkeypatch.setattr(mlnav.campaign, "run", stopped)
    command = ("-t", short, *SETUP, "--workers", 1, "--pairs", 6, "--out", tmp_path / "x",
               "--no-pictures")  # fmt: skip
    result = run(*command, code=130)
    assert result.stdout == ""
    said = " ".join(result.stderr.split())
    assert "interrupted after 8 of 12 trials: the same command goes on with what is in" in said
    assert not (tmp_path / "x/report").exists()
    before = when(tmp_path / "x")
    assert len(before) == 8
    monkeypatch.setattr(mlnav.campaign, "run", whole)
    run(*command)
    after = when(tmp_path / "x")
    assert len(after) == 12
    assert {k: v for k, v in after.items() if k in before} == before


def test_bad_input_is_refused(short, tmp_path) -> None:
    fresh = ("--out", tmp_path / "new", "--no-pictures", *SETUP)
    for args, told in (
        ((), "--terrain"),
        (("-t", ","), "--terrain"),
        (("-t", "nowhere"), "nowhere"),
        (("-t", "nowhere.tif"), "nowhere.tif"),
        (("-t", "10/.07", "80/.07"), "80"),
        (("-t", "10/.07", "10/0.07"), "given twice: 10/.07"),
        (("-t", short, "--heuristics", "none,sobbel"), "did you mean 'sobel'"),
        (("-t", short, "--heuristics", "none,"), "an empty name"),
        (("-t", short, "--heuristics", "none,sobel:weight=3"), "weight"),
        (("-t", short, "--heuristics", "none,none"), "given twice: none"),
        (("-t", short, "--planners", "enva"), "did you mean 'enav'"),
        (("-t", short, "--sensors", "sterio"), "did you mean 'stereo'"),
        (("-t", short, "--heuristics", "none"), "two contenders"),
        (("-t", short, "--pairs", 0), "--pairs"),
        (("-t", short, "--rocks", "0.1"), "GeoTIFF"),
        (("-t", short, "--rocks", "a"), "--rocks"),
        (("-t", short, "--size", 16), "GeoTIFF"),
        (("-t", short, "--band", 2), "GeoTIFF"),
        (("-t", short, "--set", "planner.x=1"), "planner"),
    ):
        assert told in refused(*args, *fresh), args
    assert not (tmp_path / "new").exists()


def test_one_configuration_is_benched_by_class(tmp_path) -> None:
    command = ("bench", "traverses")
    args = ("--classes", "0/.02,10/0.1", "--seeds", 1, *SETUP, "--set", "traverse.max_cycles=1",
            "--out", tmp_path / "x")  # fmt: skip
    told = json.loads(run(*args, "--json", command=command).stdout)
    assert [b["label"] for b in told["terrains"]] == ["0/.02", "10/.10"]
    assert [e["name"] for e in told["entrants"]] == ["none"]
    assert told["overall"]["figures"]["none"]["cycles"] == 2
    # A class is one terrain however it is written.
    before = when(tmp_path / "x")
    text = run(*args[:1], "0/0.02,10/.10", *args[2:], command=command).stdout
    assert when(tmp_path / "x") == before
    assert "times fewer" not in text
    another = ("--set", "planner.commit_length_m=0.5", "--set", "sensor.half_width_m=9")
    assert "contender none of" in refused(*args, *another, command=command)
    run(*args, *another, "--force", command=command)
    (config,) = Store(tmp_path / "x").definition.configs.values()
    assert (config.planner.commit_length_m, config.sensor.half_width_m) == (0.5, 9.0)
    assert config.checker.name == "fixed_box"
    assert "did you mean 'sobel'" in refused(*args, "--heuristic", "sobbel", command=command)


# ------------------------------------------------------------------------------------ the screen

LONG = "sobel-weight_per_m-20-to_go_fraction-0"


def shown_at_80(monkeypatch, analysis) -> str:
    screen = Console(width=80, file=io.StringIO(), highlight=False)
    for module in (compare_module, common_module):
        monkeypatch.setattr(module, "output", screen)
    print_analysis(analysis)
    return screen.file.getvalue()


def test_the_screen_tells_of_unsafe_runs_and_cuts_no_name_at_80_columns(monkeypatch) -> None:
    where = "a_valley_north_of_the_second_landing_ellipse"
    lost = {"success": False, "inefficiency": None}
    ends = (
        {"outcome": "unsafe_state", "unsafe_states": 5, "unsafe_constraint": "relief"},
        {"outcome": "goal_reached", "unsafe_states": 1, "unsafe_constraint": "tilt"},
        {"outcome": "no_safe_path", "unsafe_states": 0},
        {"outcome": "high_centred"},
    )
    analysis = analysed(
        [made_trial(where, i, "none", [1500] * 50, **lost, **end)
         for i, end in enumerate(ends)]
        + [made_trial(where, i, LONG, [20] * 50, unsafe_states=0) for i in range(4)],
    )  # fmt: skip
    text = shown_at_80(monkeypatch, analysis)
    lines = text.splitlines()
    assert "…" not in text
    tables = [line for line in lines if not line.startswith("modelled flight time")]
    assert all(len(line.rstrip()) <= 80 for line in tables), max(tables, key=len)
    none, effort = [line for line in lines if line.startswith("none ")][:2]
    unsafe = ["3/4", "75.0", "[30.1,", "95.4]", "15.00", "[3.09,", "43.84]"]
    assert none.split()[1:8] == unsafe
    assert effort.split()[1:3] == ["1,500.0", "1,500"]


def test_the_screen_tells_of_a_heuristic_that_is_out_of_work(monkeypatch) -> None:
    idle = {"risk_asked": 10, "risk_missing": 9, "events": 1, "distinct_events": ["[a] torn map"]}
    trials = [made_trial("0/.05", 0, "none", [5]), made_trial("0/.05", 0, "sobel", [5], **idle)]
    analysis = analysed(trials)
    none, sobel = analysis.entrants
    assert none.out_of_work is None
    assert "no map in 9 of 10 cycles" in sobel.out_of_work
    text = " ".join(shown_at_80(monkeypatch, analysis).split())
    assert f"sobel: {sobel.out_of_work}" in text
    assert "sobel: [a] torn map" in text


def test_a_comparison_without_the_report_extra_has_its_tables(monkeypatch, tmp_path) -> None:
    """The page alone needs jinja2 and plotly."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    recipe = tmp_path / "a.yaml"
    recipe.write_text(SHORT)
    out = tmp_path / "out"
    args = ("--terrain", recipe, "--checker", "fixed_box", "--limits", "enav_like", "--pairs", 1)
    result = run(*args, "--workers", 0, "--no-pictures", "--out", out)
    assert "mlnav[report]" in result.stdout
    assert "How trials ended" in result.stdout
    assert not (out / "report").exists()
