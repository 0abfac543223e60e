import importlib.metadata
import io
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rich.console import Console
from typer.testing import CliRunner

from mlnav import campaign
from mlnav.cli import app
from mlnav.cli.common import new_table
from mlnav.config import parse_config
from mlnav.io import read_jsonl
from mlnav.parts import names_of
from mlnav.terrain import Reading, Terrain, load, read_geotiff, write_geotiff


def run(*args: object, code: int | None = 0):
    result = CliRunner().invoke(app, [str(a) for a in args])
    if code is not None:
        assert result.exit_code == code, result.output
    return result


def refused(*args: object) -> str:
    """The one line on standard error of a run that is refused."""
    result = run(*args, code=2)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def level(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("maps") / "level.tif"
    terrain = Terrain(np.zeros((160, 240)), 0.1, (0.05, 0.05), name="level")
    write_geotiff(path, terrain)
    return path


ENDS = ("--start=4,8", "--goal=12,8")


# --------------------------------------------------------------------------------------- the basics


def test_help_of_every_command_has_examples() -> None:
    for command in (
        ["traverse"], ["plan"], ["ace"], ["ace", "explain"], ["doctor"], ["terrain", "make"],
        ["terrain", "info"], ["terrain", "show"], ["config", "show"], ["config", "schema"],
        ["bench", "soundness"], ["bench", "sweeps"], ["bench", "traverses"], ["bench", "cost"],
    ):  # fmt: skip
        text = run(*command, "--help").stdout
        assert "Examples" in text, command
    assert "Exit codes" in run("--help").stdout
    assert "130" in run("traverse", "--help").stdout


def test_version() -> None:
    assert run("--version").stdout.startswith("mlnav ")


def test_starting_is_light() -> None:
    heavy = ("matplotlib", "scipy", "rasterio", "torch", "mlnav._core")
    code = f"import sys, mlnav.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert done.stdout.strip() == b"[]"


# ----------------------------------------------------------------------------------------- traverse


def test_traverse_speaks_one_json_object(level: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(
        "traverse", "--terrain", level, *ENDS, "--planner", "enav", "--checker", "fixed_box",
        "--limits", "enav_like", "--heuristic", "none", "--world", "kinematic", "--seed", 7,
        "--out", out, "--json",
    )  # fmt: skip
    summary = json.loads(result.stdout)
    assert summary["outcome"] == "goal_reached"
    assert summary["success"] is True
    assert summary["seed"] == 7
    assert summary["endpoints"] == "given"
    assert summary["driven_m"] == pytest.approx(7.0, abs=1.01)
    assert summary["ace_evaluations_per_cycle"]["mean"] > 0
    assert json.loads((out / "summary.json").read_text()) == summary
    assert len(list(read_jsonl(out / "cycles.jsonl"))) == summary["cycles"]
    assert parse_config((out / "config.yaml").read_text()).checker.name == "fixed_box"
    assert (out / "traverse.png").stat().st_size > 10_000
    assert not (out / "traverse.gif").exists()


def test_a_run_repeats_from_its_own_config(level: Path, tmp_path: Path) -> None:
    summaries = []
    args = ("--terrain", level, *ENDS, "--no-picture", "--json")
    first = run("traverse", *args, "--heuristic", "sobel", "--out", tmp_path / "a")
    second = run("traverse", *args, "--config", tmp_path / "a/config.yaml", "--out", tmp_path / "b")
    for result in (first, second):
        summary = json.loads(result.stdout)
        del summary["timing"], summary["out"]
        summaries.append(summary)
    assert summaries[0] == summaries[1]
    assert summaries[0]["heuristic"] == "sobel"


def test_results_are_not_overwritten_unasked(level: Path, tmp_path: Path) -> None:
    args = ("traverse", "--terrain", level, *ENDS, "--no-picture", "--out", tmp_path)
    run(*args)
    (tmp_path / "notes.txt").write_text("mine")
    before = (tmp_path / "summary.json").read_bytes()
    assert "--force" in refused(*args)
    assert (tmp_path / "summary.json").read_bytes() == before
    run(*args, "--force", "--seed", 3)
    assert json.loads((tmp_path / "summary.json").read_text())["seed"] == 3
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_not_reaching_the_goal_is_exit_code_1(level: Path, tmp_path: Path) -> None:
    args = ("traverse", "--terrain", level, *ENDS, "--no-picture", "--out", tmp_path)
    result = run(*args, "--budget", 5, "--json", code=1)
    assert json.loads(result.stdout)["outcome"] == "stuck"
    result = run(*args, "--set", "traverse.max_cycles=2", "--force", code=1)
    assert "timeout" in result.stdout


def test_a_map_without_ends_gets_default_ones(level: Path, tmp_path: Path) -> None:
    result = run("traverse", "--terrain", level, "--no-picture", "--out", tmp_path, "--json")
    summary = json.loads(result.stdout)
    assert summary["endpoints"] == "default"
    assert "names no start and goal" in result.stderr
    assert summary["straight_line_m"] > 15.0


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--planner", "lattic"], "'lattic'"),
        (["--checker", "fixd_box"], "did you mean 'fixed_box'"),
        (["--limits", "flight"], "did you mean 'flight_like'"),
        (["--heuristic", "network9"], "heuristic"),
        (["--world", "bulet"], "'bulet'"),
        (["--set", "planner.comit_length_m=1"], "did you mean 'commit_length_m'"),
        (["--set", "planner.tree.ace_step_m=0.7"], "ace_step"),
        (["--start=nan,3"], "start must be finite"),
        (["--start=1e9,3"], "start .* is outside the map"),
        (["--goal=4,-1e3"], "goal .* is outside the map"),
        (["--goal=4"], "--goal: '4' is not X,Y"),
        (["--start=a,b"], "--start: 'a,b' is not X,Y"),
        (["--start=0.2,0.2", "--goal=nan,nan"], "goal must be finite"),
        (["--heading-deg", "nan"], "heading must be finite"),
        (["--heading-deg", "1e9"], "heading"),
        (["--budget", "0"], "budget"),
        (["--seed", "-1"], "seed"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml"),
        (["--bogus"], "--bogus"),
    ],
)
def test_bad_input_is_named(level: Path, tmp_path: Path, args, words) -> None:
    import re

    given = [a.split("=")[0] for a in args]
    ends = [e for e in ENDS if e.split("=")[0] not in given]
    message = refused("traverse", "--terrain", level, *ends, "--out", tmp_path / "x", *args)
    assert re.search(words, message), message
    assert not (tmp_path / "x" / "summary.json").exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5])
def test_a_truncated_tiff_is_refused(level: Path, tmp_path: Path, share: float) -> None:
    broken = tmp_path / "broken.tif"
    whole = level.read_bytes()
    broken.write_bytes(whole[: int(share * len(whole))])
    message = refused("traverse", "--terrain", broken, *ENDS, "--out", tmp_path / "x")
    assert "broken.tif" in message


@pytest.mark.parametrize("spec", ["nowhere.tif", "nowhere.yaml", "demoo", "99/.07", "", "."])
def test_terrains_that_are_none_are_named(tmp_path: Path, spec: str) -> None:
    for command in (["traverse", "--terrain", spec, "--out", tmp_path], ["terrain", "info", spec]):
        assert "error" in refused(*command)


def test_a_start_on_unknown_ground_is_refused(tmp_path: Path) -> None:
    z = np.zeros((160, 240))
    z[60:100, 20:60] = np.nan
    write_geotiff(tmp_path / "hole.tif", Terrain(z, 0.1, (0.05, 0.05)))
    message = refused("traverse", "--terrain", tmp_path / "hole.tif", *ENDS, "--out", tmp_path)
    assert "start (4, 8) is on unknown ground" in message


def test_a_folder_that_cannot_be_written_is_named(level: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = refused("traverse", "--terrain", level, *ENDS, "--out", tmp_path / "file" / "x")
    assert "file" in message


def test_debug_shows_the_traceback() -> None:
    result = run("--debug", "terrain", "info", "nowhere.tif", code=1)
    assert result.exception is not None
    assert type(result.exception).__name__ == "TerrainError"


def test_a_bug_is_an_internal_error(monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("[bold]oops")

    monkeypatch.setattr("mlnav.terrain.load", broken)
    result = run("terrain", "info", "demo", code=3)
    assert "internal error: RuntimeError: [bold]oops" in " ".join(result.stderr.split())


# ----------------------------------------------------------------------------------- other commands


def test_plan(level: Path, tmp_path: Path) -> None:
    result = run("plan", "--terrain", level, *ENDS, "--out", tmp_path, "--json")
    summary = json.loads(result.stdout)
    assert summary["outcome"] == "path"
    assert summary["paths"] == 1694
    assert len(summary["path"]) <= summary["ace_floor"]
    assert (tmp_path / "plan.png").exists()
    assert "--force" in refused("plan", "--terrain", level, *ENDS, "--out", tmp_path)


def test_ace(level: Path, tmp_path: Path) -> None:
    args = ("ace", "-t", level, "--bins", 4, "--out", tmp_path, "--json")
    summary = json.loads(run(*args, "--checker", "fixed_box", "--limits", "enav_like").stdout)
    assert summary["pass_share"] == 1.0
    assert 0.5 < summary["evaluated_share"] < 1.0
    terrain = read_geotiff(tmp_path / "ace.tif")
    share = terrain.layers["ace_pass_share"]
    assert share.shape == (160, 240)
    assert share[80, 120] == 1.0
    assert np.isnan(share[0, 0])
    assert (tmp_path / "ace.png").exists()
    summary = json.loads(run(*args, "--force").stdout)
    assert (summary["checker"], summary["limits"]) == ("verified", "flight_like")
    assert summary["rejects"] == {}
    # Near the border the rover fits along it and not across.
    assert 0.95 < summary["pass_share"] < 1.0


def test_ace_explain(level: Path, tmp_path: Path) -> None:
    args = ("ace", "explain", "-t", level, "--out", tmp_path)
    told = json.loads(run(*args, "--at", "12,8,30", "--json").stdout)
    assert json.loads((tmp_path / "explain.json").read_text()) == told
    assert (told["checker"], told["safe"], told["reasons"]) == ("verified", True, [])
    assert told["pose"] == pytest.approx([12.0, 8.0, np.radians(30.0)])
    assert told["settled"]["clearance_m"] == pytest.approx(0.6, abs=1e-6)
    assert (tmp_path / "explain.png").stat().st_size > 20_000
    assert "--force" in refused(*args, "--at", "12,8,30")
    assert "safe (at rest safe)" in run(*args, "--at", "12,8,30", "--force").stdout
    rejected = run(*args, "--at", "0.5,8,0", "--force", "--checker", "fixed_box", code=1)
    assert "rejected: border" in rejected.stdout


@pytest.mark.parametrize(
    ("at", "words"),
    [("12,8", "--at: '12,8' is not X,Y,DEG"), ("a,b,c", "--at"), ("900,8,0", "outside the map"),
     ("nan,8,0", "finite")],
)  # fmt: skip
def test_ace_explain_refuses_what_is_no_pose(level: Path, tmp_path: Path, at, words) -> None:
    assert words in refused("ace", "explain", "-t", level, "--out", tmp_path / "x", "--at", at)
    assert not (tmp_path / "x").exists()


def test_terrain_make_info_show(tmp_path: Path) -> None:
    made = tmp_path / "made.tif"
    run("terrain", "make", "flat", "--seed", 5, "--out", made)
    assert "made.tif" in refused("terrain", "make", "flat", "--out", made)
    assert ".tif" in refused("terrain", "make", "flat", "--out", tmp_path / "made.png")
    stats = json.loads(run("terrain", "info", made, "--json").stdout)
    direct = json.loads(run("terrain", "info", "flat", "--seed", 5, "--json").stdout)
    assert stats["sha256"] == direct["sha256"]
    assert "slope" in run("terrain", "info", made).stdout
    run("terrain", "show", made, "--out", tmp_path / "made.png")
    assert "--force" in refused("terrain", "show", made, "--out", tmp_path / "made.png")


@pytest.fixture(scope="module")
def ramp(tmp_path_factory) -> Path:
    """1:2 in metres, where nothing drives, 1:6.6 in feet; holes have a value without notice."""
    z = np.tile(0.05 * np.arange(240, dtype=np.float32), (160, 1))
    z[:10, :10] = -9999.0
    path = tmp_path_factory.mktemp("maps") / "ramp.tif"
    shape = {"height": 160, "width": 240, "count": 1, "dtype": "float32"}
    upright = rasterio.Affine(0.1, 0.0, 0.0, 0.0, 0.1, 0.0)
    with rasterio.open(path, "w", driver="GTiff", transform=upright, **shape) as sink:
        sink.write(z, 1)
    return path


READ = ("--nodata", -9999, "--vertical-unit", "ft")

ON_MAPS = {
    "traverse": (["traverse", *ENDS, "--no-picture"], "-t"),
    "plan": (["plan", *ENDS], "-t"),
    "ace": (["ace", "--bins", 2, "--checker", "settle"], "-t"),
    "explain": (["ace", "explain", "--at=4,8,0"], "-t"),
    "compare": (["compare", "--heuristics", "none,sobel", "--pairs", 1, "--no-pictures"], "-t"),
    "campaign": (["campaign", "run", "real", "--trials", 1, "--workers", 1], "-t"),
    "soundness": (["bench", "soundness", "--poses", 100], "-t"),
    "sweeps": (["bench", "sweeps", "--motions", 10], "-t"),
    "make": (["terrain", "make"], None),
    "info": (["terrain", "info"], None),
    "show": (["terrain", "show"], None),
}


def on_map(command: str, path: Path, out: Path) -> list[object]:
    """The command on a map; its results go to `out`."""
    words, option = ON_MAPS[command]
    named = [path] if option is None else [option, path]
    if command == "info":
        return [*words, *named]
    last = {"make": "out.tif", "show": "out.png"}.get(command, "results")
    more = ["--set", "contenders=[none]"] if command == "campaign" else []
    return [*words, *named, *more, "--out", out / last]


@pytest.mark.parametrize("command", ON_MAPS)
def test_maps_that_say_too_little_are_read_as_told(ramp: Path, tmp_path: Path, command) -> None:
    words = on_map(command, ramp, tmp_path)
    message = refused(*words)
    assert "ramp.tif" in message
    assert "--nodata" in message
    assert list(tmp_path.iterdir()) == []
    run(*words, *READ)


@pytest.mark.parametrize("command", ["make", "info"])
def test_units_and_holes_are_as_told(ramp: Path, tmp_path: Path, command) -> None:
    told = load(ramp, reading=Reading(1, (-9999.0,), "ft"))
    words = on_map(command, ramp, tmp_path)
    if command == "make":
        run(*words, *READ)
        assert read_geotiff(tmp_path / "out.tif").sha256 == told.sha256
    else:
        assert json.loads(run(*words, *READ, "--json").stdout)["sha256"] == told.sha256
    assert np.nanmax(told.z) == pytest.approx(239 * 0.05 * 0.3048)
    assert np.isnan(told.z).sum() == 100


def test_what_a_map_is_read_by_drives_the_rover(ramp: Path, tmp_path: Path) -> None:
    words = on_map("traverse", ramp, tmp_path)
    assert json.loads(run(*words, *READ, "--json").stdout)["success"]
    run(*words, "--nodata", -9999, "--force", code=1)  # metres: as steep as 1:2
    assert "no band 2" in refused(*words, *READ, "--band", 2, "--force")


def test_a_campaign_reads_maps_alike_when_it_is_gone_over_again(ramp: Path, tmp_path: Path) -> None:
    run(*on_map("campaign", ramp, tmp_path), *READ)
    folder = tmp_path / "results"
    told = load(ramp, reading=Reading(1, (-9999.0,), "ft"))
    (row,) = campaign.load(folder).trials().to_pylist()
    assert row["terrain_sha256"] == told.sha256
    run("campaign", "rerun", folder, "ramp,0,none", "--workers", 1)
    words = ("replay", "ramp,0,none", "-C", folder, "--no-picture", "-o", tmp_path / "replay")
    assert json.loads(run(*words, "--json").stdout)["identical"]


def test_reading_options_are_of_geotiffs(tmp_path: Path) -> None:
    for words in (
        ["terrain", "info", "demo"],
        ["traverse", "-t", "10/.07", "--out", tmp_path / "x"],
        ["compare", "-t", "10/.07", "--out", tmp_path / "x"],
        ["campaign", "run", "smoke", "--out", tmp_path / "x"],
        ["bench", "soundness", "--out", tmp_path / "x"],
    ):
        assert "of GeoTIFFs" in refused(*words, "--nodata", 0)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def coarse(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("maps") / "coarse.tif"
    write_geotiff(path, Terrain(np.zeros((60, 60)), 0.5, (0.25, 0.25), name="coarse"))
    return path


@pytest.mark.parametrize("command", ["traverse", "plan", "ace", "explain", "compare", "campaign"])
def test_coarse_cells_are_driven_on_only_if_one_insists(coarse, tmp_path, command) -> None:
    words = on_map(command, coarse, tmp_path)
    assert "cells of 0.5 m" in (message := refused(*words))
    assert "--allow-coarse" in message
    assert list(tmp_path.iterdir()) == []
    run(*words, "--allow-coarse")
    if command == "campaign":  # what was insisted on is part of it
        folder = tmp_path / "results"
        run("replay", "coarse,0,none", "-C", folder, "--no-picture", "-o", tmp_path / "replay")


def test_coarse_cells_are_looked_at_and_told(coarse: Path, tmp_path: Path) -> None:
    stats = json.loads(run("terrain", "info", coarse, "--json").stdout)
    assert stats["fine_enough"] is False
    assert json.loads(run("terrain", "info", "demo", "--json").stdout)["fine_enough"] is True
    assert "coarser than the 0.2 m" in run("terrain", "info", coarse).stdout
    shown = run("terrain", "show", coarse, "--out", tmp_path / "a.png")
    assert "coarser than the 0.2 m" in shown.stderr


def test_a_terrain_is_shown_beside_other_results(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_geotiff("map.tif", Terrain(np.zeros((60, 60)), 0.1, name="../far away"))
    run("terrain", "show", "map.tif")
    assert {str(p) for p in Path().rglob("*.*")} == {"map.tif", "out/terrain/faraway.png"}
    assert "--force" in refused("terrain", "show", "map.tif")
    run("terrain", "show", "map.tif", "--force")


def test_config_show_and_schema() -> None:
    text = run("config", "show", "--checker", "settle", "--set", "limits.tilt_max_deg=20").stdout
    config = parse_config(text)
    assert config.checker.name == "settle"
    assert config.limits.tilt_max_deg == 20
    assert json.loads(run("config", "show", "--json").stdout)["limits"] == "flight_like"
    assert json.loads(run("config", "schema").stdout)["title"] == "Config"


def test_doctor() -> None:
    report = json.loads(run("doctor", "--json").stdout)
    assert report["ok"] is True
    assert report["checks"]["rover settles on level ground"]["ok"] is True
    assert "compiled core" in run("doctor").stdout


def test_doctor_tells_of_every_extra(monkeypatch) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    known = {
        name: {re.match(r"[\w.-]+", text)[0] for text in parts}
        for name, parts in project["optional-dependencies"].items()
        if name != "dev"
    }
    version = importlib.metadata.version

    def without_torch(name: str) -> str:
        if name == "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_torch)
    extras = json.loads(run("doctor", "--json").stdout)["extras"]
    assert {n: {*e["installed"], *e["missing"]} for n, e in extras.items()} == known
    assert "torch" in extras["train"]["missing"]
    text = run("doctor").stdout
    for name in known:
        assert f"note  extra {name}: " in text
    assert "torch missing: pip install 'mlnav[train]'" in text


def test_bench_soundness_speaks_json(level: Path, tmp_path: Path) -> None:
    args = ("bench", "soundness", "--terrain", level, "--poses", 300, "--out", tmp_path)
    report = json.loads(run(*args, "--random-share", 1, "--json").stdout)
    assert json.loads((tmp_path / "soundness.json").read_text()) == report
    assert (report["checker"], report["limits"]) == ("verified", "flight_like")
    assert report["poses"] == report["passed"] == report["settled_safe"] == 300
    assert report["outside_limits"] == report["outside_bounds"] == report["safe_rejected"] == 0
    assert report["starts"] == {"nominal": 300, "box_centre": 300, "random": 2100}
    assert report["suspicious"] == {"found": 0, "written": 0}
    assert (tmp_path / "suspicious.jsonl").read_text() == ""
    assert "--force" in refused(*args)
    assert "0 of 2,100 random starts" in run(*args, "--force", "--random-share", 1).stdout
    assert "checker" in refused(*args, "--force", "--box", ".2", "--checker", "settle")
    box = (*args, "--force", "--checker", "fixed_box", "--box")
    assert "--box" in refused(*box, "small")
    assert "box 0.2 m" in run(*box, "0.2").stdout


def test_bench_soundness_replays_what_it_found(tmp_path: Path) -> None:
    found = ("bench", "soundness", "-t", "0/.20", "--poses", 600, "--checker", "fixed_box")
    report = json.loads(run(*found, "--limits", "enav_like", "--out", tmp_path, "--json").stdout)
    cases = tmp_path / "suspicious.jsonl"
    assert report["suspicious"]["found"] == len(list(read_jsonl(cases))) > 0
    again = run("bench", "soundness", "--replay", cases, "--json", code=1)
    replayed = json.loads(again.stdout)
    assert replayed["cases"] == replayed["again"] == report["suspicious"]["found"]
    assert all(r["now"] == r["what"] for r in replayed["results"])
    assert "outside_bounds" in run("bench", "soundness", "--replay", cases, code=1).stdout
    # The certified checker does better on the same cases.
    boxes = '"name": "fixed_box", "half_length_m": 0.2, "half_width_m": 0.2'
    text = cases.read_text().replace(boxes, '"name": "verified"')
    assert text.count('"verified"') == replayed["cases"]
    cases.write_text(text)
    assert json.loads(run("bench", "soundness", "--replay", cases, "--json").stdout)["again"] == 0


def test_cases_that_cannot_be_replayed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"pose": [1, 2, 3]}\n')
    assert "not a suspicious case" in refused("bench", "soundness", "--replay", path)
    assert "nowhere" in refused("bench", "soundness", "--replay", tmp_path / "nowhere.jsonl")


def test_bench_cost(level: Path) -> None:
    args = ("bench", "cost", "--grounds", f"0/.05,{level}", "--poses", 50)
    report = json.loads(run(*args, "--json").stdout)
    assert [r["ground"] for r in report["rows"][:2]] == ["0/.05", "0/.05"]
    assert {r["checker"] for r in report["rows"]} == set(names_of("checker"))
    assert len(report["rows"]) == 2 * len(names_of("checker"))
    table = run(*args).stdout
    assert all(name in table for name in names_of("checker"))


def test_traverse_tells_of_unsafe_states_and_draws_the_first(level: Path, tmp_path: Path) -> None:
    unsafe = ("traverse", "-t", "15/.10", "--checker", "fixed_box", "--seed", 0)
    told = run(*unsafe, "--out", tmp_path / "unsafe", code=1).stdout
    summary = json.loads((tmp_path / "unsafe" / "summary.json").read_text())
    assert summary["outcome"] == "unsafe_state"
    line = next(text for text in told.splitlines() if text.startswith("unsafe "))
    first = summary["unsafe_state"]
    assert f"{summary['unsafe_states']} of {summary['judged_states']:,} judged states" in line
    assert f"first at {first['distance_m']:.2f} m ({first['phase']}): relief" in line
    assert f"({first['part']})" in line and "limit 0.3 m" in told
    assert (tmp_path / "unsafe" / "unsafe.png").stat().st_size > 10_000
    told = run("traverse", "-t", level, *ENDS, "--out", tmp_path / "safe")
    assert re.search(r"unsafe +none of [\d,]+ judged states", told.stdout)
    assert not (tmp_path / "safe" / "unsafe.png").exists()


@pytest.mark.parametrize("width", [20, 40, 80])
def test_tables_of_the_screen_cut_no_cell(width: int) -> None:
    screen = Console(width=width, file=io.StringIO(), highlight=False)
    table = new_table(("ground", "checker"), ("passed", "us/pose"))
    cells = ["a_valley_north_of_the_second_landing_ellipse+.10", "verified", "12345.67", "0.12"]
    table.add_row(*cells)
    screen.print(table)
    text = screen.file.getvalue()
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    shown = sorted(re.sub(r"\s", "", text))
    assert shown == sorted("".join(["ground", "checker", "passed", "us/pose", *cells]))
