"""Reports of campaigns: whatever was recorded, they render, and say what is weak."""

from __future__ import annotations

import builtins
import csv
import io
import json
import re
import shutil
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from campaign_cases import tiny
from PIL import Image

from mlnav import campaign
from mlnav.campaign import CampaignError, merge, status
from mlnav.campaign.analysis import Failure
from mlnav.campaign.definition import Definition, parse_definition
from mlnav.campaign.replay import find, replay
from mlnav.campaign.store import CYCLES, TRIALS, Writer, create, locked, part_path
from mlnav.config import Config
from mlnav.report.report import (
    COMPARED_FILES,
    FILES,
    compare_reports,
    markdown_cell,
    write_report,
)
from mlnav.report.stills import _draw, chosen, drive_in_bounds
from mlnav.report.tables import cell, number, p_value
from mlnav.sim.explain import explain_drive
from mlnav.stats import Estimate, Rate

for library in ("jinja2", "plotly"):
    pytest.importorskip(library, reason=f"{library} is not installed (extra `report`)")


run = partial(campaign.run, workers=0)


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of twelve trials; its recipes are beside it."""
    home = tmp_path_factory.mktemp("driven")
    return run(tiny(home), home / "c").folder


def failing(folder: Path) -> Definition:
    """One contender has too few evaluations to prove any path."""
    starved = {"name": "starved", "traverse.ace_budget": 5}
    return tiny(folder, trials=1, contenders=["none", starved])


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


class Page(HTMLParser):
    """What a page links to, loads and runs."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if tag == "a" and name == "href":
                self.links.append(value or "")
            elif name in ("src", "href"):
                self.loads.append(value or "")


def checked(paths: dict[str, Path]) -> Page:
    """A page that holds everything, with links that lead somewhere; and whole tables."""
    page = Page(next(p for name, p in paths.items() if name.endswith(".html")))
    assert all(load.startswith("data:") for load in page.loads)
    assert len(set(page.ids)) == len(page.ids)
    folder = next(iter(paths.values())).parent
    for link in page.links:
        found = link[1:] in page.ids if link.startswith("#") else (folder / link).exists()
        assert found, link
    text = next(p for name, p in paths.items() if name.endswith(".md")).read_text()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert len(set(rows)) == 1, table
    for name, path in paths.items():
        if name.endswith(".json"):
            json.loads(path.read_text(), parse_constant=pytest.fail)
    return page


def written(folder: Path, definition: Definition, rows: list[dict[str, Any]]) -> Path:
    """A campaign of these trials, without cycles."""
    folder.mkdir()
    numbers = sorted({r["trial"] for r in rows})
    identity = {(t.label, t.number, t.contender): t.identity for t in definition.trials_of(numbers)}
    whole = [
        {
            "identity": identity[r["terrain"], r["trial"], r["contender"]],
            "code": "c0de",
            "cycles": 0,
            "faults": [],
            "attempts": 1,
            **r,
        }
        for r in rows
    ]
    with locked(folder):
        create(folder, definition)
        with Writer(folder, {"what": "run", "host": "<host>"}) as writer:
            if whole:
                writer.add_part(pa.Table.from_pylist(whole, TRIALS), CYCLES.empty_table())
    return folder


def odd(**changes: Any) -> Definition:
    data = {
        "name": "<script>alert(1)</script>",
        "description": "**bold** | `code` <img src=x onerror=alert(2)> " + "пустыня " * 40,
        "trials": 1,
        "terrains": ["0/.05"],
        "contenders": ["none"],
        "config": {"checker": "fixed_box", "limits": "enav_like"},
        **changes,
    }
    return parse_definition(json.dumps(data))


def test_a_campaign_from_beginning_to_page(driven: Path) -> None:
    store = campaign.load(driven)
    paths = write_report(store.folder)
    assert tuple(paths) == FILES
    page = checked(paths)
    assert {"chart-ratio", "chart-success", "chart-effort", "chart-time"} <= set(page.ids)
    trials = read_csv(paths["trials.csv"])
    assert len(trials) == 12
    assert (
        json.loads(trials[0]["reliability_poses"]) == store.trials()["reliability_poses"][0].as_py()
    )
    summary = read_csv(paths["summary.csv"])
    assert [(r["terrain"], r["contender"]) for r in summary] == [
        (g, c) for g in ("a", "b", "all") for c in ("none", "sobel")
    ]
    assert sum(int(r["trials"]) for r in summary if r["terrain"] == "all") == 12
    told = json.loads(paths["report.json"].read_text())
    assert told["overall"]["figures"]["none"]["success"]["trials"] == 6
    assert store.provenance[0]["code"] in page.text
    assert "sobel" in paths["report.md"].read_text()
    # Nothing of it depends on when it is written.
    before = {name: path.read_bytes() for name, path in paths.items()}
    write_report(store.folder)
    assert {name: path.read_bytes() for name, path in paths.items()} == before


def test_a_drive_is_drawn_inside_its_bounds(tmp_path: Path) -> None:
    definition = odd(name="bounds", terrains=["0/.02"], config={})
    store = run(definition, tmp_path / "c")
    page = checked(write_report(store.folder, pictures=1))
    assert "bounds" in page.ids
    assert len([x for x in page.loads if x.startswith("data:image/jpeg;base64,")]) == 1
    row = store.rows(("key",))[0]
    trial = find(row["key"], store.folder)
    again = replay(trial)
    drive = explain_drive(again.scenario.terrain, trial.trial.config, again.result.cycles)
    assert drive.safe
    assert drive.edge_m[-1] >= again.result.driven_m - 1e-6
    part = np.clip(np.searchsorted(drive.edge_m, drive.state_m), 1, len(drive.edge_m) - 1) - 1
    for name, bounds in drive.bounds.items():
        inside = [
            (bounds[p, 0] - 1e-4 <= v <= bounds[p, 1] + 1e-4)
            for p, v in zip(part, drive.settled[name], strict=True)
        ]
        assert np.mean(inside) > 0.97, name  # a state at an edge belongs to both stretches
    lost = odd(name="lost", terrains=["0/.02"], config={"localization": "wheel"})
    assert drive_in_bounds(run(lost, tmp_path / "s")) is None


def test_failures_are_driven_again_and_drawn(tmp_path: Path) -> None:
    store = run(failing(tmp_path), tmp_path / "c")
    failures = [r for r in store.trials().to_pylist() if not r["success"]]
    assert failures
    paths = write_report(store.folder, tmp_path / "out", pictures=1)
    page = checked(paths)
    pictures = [load for load in page.loads if load.startswith("data:image/jpeg;base64,")]
    assert len(pictures) == 1 + ("bounds" in page.ids)
    key = next(i for i in page.ids if i.startswith("failure-")).removeprefix("failure-")
    assert find(key, store.folder).row["success"] is False
    command = f"mlnav replay {key} --campaign {store.folder}"
    assert command in page.text
    assert command in paths["report.md"].read_text()
    assert not (store.folder / "report").exists()


def test_an_unsafe_run_is_drawn_with_what_was_at_fault(tmp_path: Path) -> None:
    definition = odd(
        name="unsafe", terrains=["15/.10"], trials=2,
        config={"checker": "fixed_box", "limits": "flight_like"},
    )  # fmt: skip
    store = run(definition, tmp_path / "c")
    rows = store.trials().to_pylist()
    assert [r["outcome"] for r in rows] == ["unsafe_state"] * 2
    jpeg, note = _draw((store.folder, rows[0]["key"]))
    assert jpeg is not None and note is None
    width, height = Image.open(io.BytesIO(jpeg)).size
    assert height > width  # the run, and below it the unsafe state; each is wider than high


def failure(contender: str, outcome: str, number: int = 0) -> Failure:
    key = f"{contender}{outcome}{number}"
    return Failure(key, "a", number, contender, outcome, (), None, 1, 1.0, "c0de")


def test_which_failures_are_drawn() -> None:
    all_of_them = [
        failure("none", "stuck", 0),
        failure("none", "crashed", 0),
        failure("sobel", "stuck", 0),
        failure("sobel", "stuck", 1),
        failure("none", "timeout", 1),
    ]
    found = [(s.failure.key, s.like_it) for s in chosen(all_of_them, 9)]
    assert found == [("sobelstuck0", 2), ("nonestuck0", 1), ("nonetimeout1", 1)]
    assert len(chosen(all_of_them, 1)) == 1


def test_no_trials(tmp_path: Path) -> None:
    paths = write_report(written(tmp_path / "c", odd(contenders=["none", "sobel"]), []))
    page = checked(paths)
    assert "There are no trials, so there are no figures." in page.text
    assert "plotly" not in page.text.lower()


@pytest.mark.parametrize("contenders", [["none"], ["none", "sobel"]])
@pytest.mark.parametrize("number", [1, 2])
def test_all_trials_failed(tmp_path: Path, contenders: list[str], number: int) -> None:
    definition = odd(contenders=contenders, trials=number)
    rows = [
        {
            "key": f"{n}{c}", "terrain": "0/.05", "trial": n, "contender": c, "outcome": "crashed",
            "success": False, "error": "its process ended <b>badly</b>",
        }
        for n in range(number)
        for c in contenders
    ]  # fmt: skip
    page = checked(write_report(written(tmp_path / "c", definition, rows)))
    assert "No trial reached its goal" in page.text
    assert "its process ended &lt;b&gt;badly" in page.text
    assert f"{number * len(contenders)} trials were lost" in page.text


def test_one_trial_of_one_contender(tmp_path: Path) -> None:
    definition = tiny(tmp_path, trials=1, contenders=["none"])
    grounds = definition.model_copy(update={"terrains": definition.terrains[:1]})
    page = checked(write_report(run(grounds, tmp_path / "c").folder))
    assert "chart-success" in page.ids
    assert "chart-ratio" not in page.ids


def test_odd_names_do_no_harm(tmp_path: Path) -> None:
    ground = tmp_path / "дюны | <i>x</i> `y` and a very long name that goes on and on.yaml"
    ground.parent.mkdir(exist_ok=True)
    first = tiny(tmp_path).terrains[0].terrain
    ground.write_text(Path(first).read_text())
    store = run(odd(terrains=[str(ground)], contenders=["none", "sobel"]), tmp_path / "c")
    paths = write_report(store.folder)
    page = checked(paths)
    assert "<script>alert(1)" not in page.text
    assert "onerror=alert" not in "".join(re.findall(r"<[^>]*onerror[^>]*>", page.text))
    assert "<i>x</i>" not in page.text
    assert "&lt;i&gt;x&lt;/i&gt;" in page.text
    assert "<script>" not in paths["report.md"].read_text()
    assert read_csv(paths["trials.csv"])[0]["terrain"] == ground.stem


def test_damaged_parts_are_told_of(driven: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(driven, tmp_path / "c")
    path = part_path(folder, "trials", 1)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    page = checked(write_report(folder, pictures=0))
    assert "cannot be read, their trials are missing" in page.text
    assert path.name in page.text


def test_a_folder_without_a_campaign_or_a_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="holds no campaign"):
        write_report(tmp_path)
    folder = written(tmp_path / "c", odd(), [])
    (tmp_path / "file").write_text("")
    with pytest.raises(CampaignError, match="cannot write to"):
        write_report(folder, tmp_path / "file" / "out")


@pytest.mark.parametrize("missing", ["jinja2", "plotly"])
def test_the_extra_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == missing:
            raise ImportError(f"No module named {missing!r}", name=missing)
        return real(name, *args, **more)

    for name in [n for n in sys.modules if n.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CampaignError, match=rf"reports need {missing}: .*mlnav\[report\]"):
        write_report(tmp_path)


# ------------------------------------------------------------------------------------ comparisons


def test_a_campaign_beside_itself(driven: Path, tmp_path: Path) -> None:
    paths = compare_reports(driven, driven, tmp_path / "out")
    assert tuple(paths) == COMPARED_FILES
    page = checked(paths)
    assert "none: all 6 pairs went the same way to the last evaluation." in page.text
    assert "none: the same configuration." in page.text
    told = json.loads(paths["compare.json"].read_text())["overall"][1]["against"]["sobel"]
    ratio = told["metrics"]["evaluations"]["estimate"]["value"]
    assert (told["pairs"], told["same"], ratio) == (6, 6, 1.0)


def test_a_campaign_beside_one_of_other_settings_and_contenders(
    driven: Path, tmp_path: Path
) -> None:
    other = tiny(driven.parent, contenders=["none", "failures"], trials=2)
    base = Config().replaced(["planner.commit_length_m=0.5"], checker="fixed_box",
                             limits="enav_like")  # fmt: skip
    other = other.model_copy(update={"config": base.model_dump(mode="json")})
    after = run(other, tmp_path / "b").folder
    page = checked(compare_reports(driven, after, tmp_path / "out"))
    assert "one campaign alone has them: contenders failures, sobel" in page.text
    assert "planner.commit_length_m" in page.text
    assert "none: 4 pairs of 6 and 4 trials." in page.text


def test_a_campaign_beside_one_of_another_seed(driven: Path, tmp_path: Path) -> None:
    after = run(tiny(driven.parent, seed=5), tmp_path / "b").folder
    page = checked(compare_reports(driven, after, tmp_path / "out"))
    assert "no trial of one campaign is one of the other" in page.text
    assert "unpaired" in page.text


def test_campaigns_with_nothing_in_common_or_nothing_at_all(tmp_path: Path) -> None:
    empty = written(tmp_path / "a", odd(), [])
    other = written(tmp_path / "b", odd(contenders=["sobel"]), [])
    page = checked(compare_reports(empty, other, tmp_path / "out"))
    assert "no contender and terrain in common" in page.text
    checked(compare_reports(empty, empty, tmp_path / "out"))


# ------------------------------------------------------------------------------------- in text


def test_numbers_in_text() -> None:
    assert number(None) == "–"
    assert number(-0.0001, 2) == "0.00"
    assert number(12345.6) == "12,346"
    assert number(0.123, 1, 100.0, True) == "+12.3"
    assert str(cell(Estimate(1.0, None, 3))) == "1"
    assert str(cell(Rate(5, 10), 0, 100.0)) == "50 [24, 76]"
    assert [p_value(p) for p in (None, 1e-6, 0.0123, 0.5)] == ["–", "< 0.001", "0.012", "0.50"]
    assert markdown_cell("a|b\n<i>`c`") == "a\\|b &lt;i>\\`c\\`"


def unsafe_campaign(tmp_path: Path, grounds: list[str] | None = None) -> Path:
    grounds = grounds or ["20/.05"]
    definition = odd(name="unsafe", trials=2, terrains=grounds, contenders=["none", "sobel"])
    rows = [
        {"key": f"{g} {c} {n}", "terrain": g, "trial": n, "contender": c, "driven_m": 50.0,
         "outcome": "unsafe_state" if c == "none" else "goal_reached", "success": c != "none",
         "unsafe_states": 3 if c == "none" else 0,
         "unsafe_constraint": "relief" if c == "none" else None}
        for g in definition.labels for c in ("none", "sobel") for n in range(2)
    ]  # fmt: skip
    return written(tmp_path / "campaign", definition, rows)


def test_unsafe_trials_are_a_headline_everywhere(tmp_path: Path) -> None:
    paths = write_report(unsafe_campaign(tmp_path), pictures=0)
    checked(paths)
    html, text = paths["report.html"].read_text(), paths["report.md"].read_text()
    told = "Unsafe: 2 of 2 trials (100.0 %, 95 % interval 34.2 to 100.0 %; 20.00 per driven km)"
    short = text[text.index("## In short") : text.index("## Weak points")]
    weak = text[text.index("## Weak points") : text.index("## By terrain")]
    assert told in short and told in html
    assert "| none | 2/2 | 100.0 [34.2, 100.0] | 20.00 [2.42, 72.25] |" in short
    assert "| sobel | 0/2 | 0.0 [0.0, 65.8] | 0.00 [0.00, 36.89] |" in short
    assert weak.split("\n- ")[1].startswith("**Unsafe.** none: 2 of 2 trials were unsafe")
    assert "| 20/.05 | none | 2/2 | 100.0 [34.2, 100.0] | 20.00 [2.42, 72.25] | 60.0 |" in text
    assert 'id="chart-unsafe"' in html
    assert html.index('id="chart-unsafe"') < html.index('id="chart-success"')
    line = read_csv(paths["summary.csv"])[0]
    assert (line["unsafe_hits"], line["unsafe_per_km"]) == ("2", "20.0")
    assert line["unsafe_states_per_km"] == "60.0"
    assert float(line["unsafe_low"]) == pytest.approx(0.342, abs=1e-3)


def test_campaigns_beside_each_other_tell_of_unsafe_trials(tmp_path: Path) -> None:
    folder = unsafe_campaign(tmp_path)
    paths = compare_reports(folder, folder, tmp_path / "out")
    text = paths["compare.md"].read_text()
    assert "unsafe are 2 of 2 trials after, 2 of 2 before" in text
    assert "| 20/.05 | none | 2/2 → 2/2 |" in text
    assert "2/2 → 2/2" in paths["compare.html"].read_text()


def test_the_status_tells_of_unsafe_trials_by_contender(tmp_path: Path) -> None:
    found = status(unsafe_campaign(tmp_path))
    assert [f.rate("unsafe").hits for f in found.figures.values()] == [2, 0]
    assert found.as_dict()["figures"]["none"]["unsafe_per_km"]["rate"] == 20.0


def test_charts_leave_nothing_of_a_name_out(tmp_path: Path, recipes_folder: Path) -> None:
    tiny(recipes_folder)
    name = "a_valley_north_of_the_second_landing_ellipse"
    path = (recipes_folder / "a.yaml").rename(recipes_folder / f"{name}.yaml")
    folder = unsafe_campaign(tmp_path, [str(path), "20/.05"])
    html = write_report(folder, pictures=0)["report.html"].read_text()
    charts = json.loads(re.findall(r'"chart-unsafe": (\{.*\})', html)[0].rstrip(","))
    rows = charts["layout"]["yaxis"]["ticktext"]
    assert [row.replace("<br>", "") for row in rows] == ["all terrains", name, "20/.05"]
    assert max(len(line) for row in rows for line in row.split("<br>")) <= 28


def test_templates_ship() -> None:
    from importlib.resources import files

    names = {f.name for f in (files("mlnav.report") / "templates").iterdir()}
    assert {"report.html.j2", "report.md.j2", "compare.html.j2", "compare.md.j2"} <= names


@pytest.mark.parametrize("what", ["report", "status", "compare", "merge"])
def test_a_definition_that_was_edited_does_not_speak_of_the_old_trials(
    tmp_path, recipes_folder, what
) -> None:
    folder = tmp_path / "edited"
    run(tiny(recipes_folder, trials=1), folder)
    path = folder / "campaign.yaml"
    path.write_text(path.read_text().replace("fixed_box", "settle"))
    calls = {
        "report": lambda: write_report(folder),
        "status": lambda: status(folder),
        "compare": lambda: compare_reports(folder, folder, tmp_path / "out"),
        "merge": lambda: merge([folder], tmp_path / "whole"),
    }
    with pytest.raises(CampaignError, match=r"4 trials that are not of its campaign\.yaml"):
        calls[what]()
    assert not (folder / "report").exists() and not (tmp_path / "out").exists()
    assert not (tmp_path / "whole").exists()


@pytest.fixture
def recipes_folder(tmp_path):
    folder = tmp_path / "recipes"
    folder.mkdir()
    return folder
