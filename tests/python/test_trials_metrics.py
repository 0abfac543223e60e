"""The table of metrics: by hand, against statsmodels, and that a report takes all of it."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import analysed, made_campaign, made_runs, made_trial
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from mlnav.config import Config
from mlnav.stats import Estimate, PerExposure, Rate, paired_mean, paired_ratio, pooled_mean
from mlnav.trials.flight_time import STAGES, FlightModel, Instructions, load_instructions
from mlnav.trials.metrics import (
    EFFORT,
    ENDINGS,
    HEADLINE,
    METRICS,
    TERRAIN,
    TIME,
    Kind,
    Metric,
    compared,
    compared_unpaired,
    figures,
    flight_seconds,
    in_table,
    metric,
)
from mlnav.trials.runs import Run, Runs

FAILED = {"success": False, "outcome": "stuck", "inefficiency": None}

RISK = {
    "inferences": [1, 0], "risk_used": [True, True], "risk_requested": [True, False],
    "ace_floor": [25, 30],
}  # fmt: skip

HAND = [
    made_trial("0/.05", 0, "none", [100, 300]),
    made_trial("0/.05", 0, "sobel", [50, 50], by_cycle=RISK, inefficiency=0.3),
    made_trial("0/.05", 1, "none", [40, 60], **FAILED),
    made_trial("0/.05", 1, "sobel", [20, 20], by_cycle={"ace_floor": [30, None]}),
    made_trial("20/.05", 0, "none", [10]),
    made_trial("20/.05", 0, "sobel", [20]),
    made_trial("20/.05", 1, "none", [10], inefficiency=0.5),
    made_trial("20/.05", 1, "sobel", [20], inefficiency=0.1),
]


# -------------------------------------------------------------------------------------- the table


def test_every_metric_has_a_name_of_its_own_and_a_place() -> None:
    names = [m.name for m in METRICS]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    assert all(metric(m.name) is m for m in METRICS)
    tables = {HEADLINE, TERRAIN, TIME, ENDINGS, EFFORT}
    assert {t for m in METRICS for t in m.tables} == tables
    for table in tables:
        headings = [m.heading for m in in_table(table)]
        assert len(set(headings)) == len(headings), table
    # What contenders are compared by has a way to be compared.
    assert {m.name for m in METRICS if m.versus and m.kind is Kind.RUNS} == set()


def test_the_report_takes_every_metric(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    from mlnav.report.report import write_report

    paths = write_report(made_campaign(tmp_path / "x", HAND), pictures=0)
    names = {m.name for m in METRICS}
    told = json.loads(paths["report.json"].read_text(), parse_constant=pytest.fail)
    for block in (*told["terrains"], told["overall"]):
        assert all(set(figures) == names for figures in block["figures"].values())
        assert set(block["against"]["sobel"]["metrics"]) == {m.name for m in METRICS if m.versus}
    with open(paths["summary.csv"]) as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert names <= set(lines[0])
    assert json.loads(lines[0]["outcomes"]) == {"goal_reached": 1, "stuck": 1}
    assert (lines[0]["success_hits"], lines[0]["success"]) == ("1", "0.5")
    html, markdown = (paths[name].read_text() for name in ("report.html", "report.md"))
    for m in METRICS:
        if {HEADLINE, TERRAIN, TIME} & set(m.tables):
            assert m.heading in markdown and m.heading in html, m.name
        if m.definition and m.tables:
            assert m.definition in html


FURTHER = """
    Metric(
        "paths_tried", "paths tried", "n", "Paths taken off the ranked lists, a cycle.",
        Kind.PER_CYCLE, lambda run: run.paths_tried, 1,
        tables=(HEADLINE, TERRAIN, TIME, ENDINGS, EFFORT), versus="paths, times fewer",
    ),
    Metric("longest_m", "longest run", "m", "", Kind.RUNS,
           lambda runs: max(runs.known("driven_m"), default=None)),
"""

WITH_FURTHER = """
import importlib.util, pathlib, sys
name = "mlnav.trials.metrics"
spec = importlib.util.find_spec(name)
text = pathlib.Path(spec.origin).read_text()
head, end, tail = text.partition(")  # fmt: skip\\n\\n_BY_NAME")
assert tail
module = sys.modules[name] = importlib.util.module_from_spec(spec)
exec(compile(head + sys.argv[2] + end + tail, spec.origin, "exec"), module.__dict__)

from mlnav.cli.compare import print_analysis
from mlnav.campaign.store import Store
from mlnav.report.report import analysis_of, compare_reports, write_report
write_report(sys.argv[1], pictures=0)
compare_reports(sys.argv[1], sys.argv[1], sys.argv[1] + "/compared")
print_analysis(analysis_of(Store(sys.argv[1])))
"""


def test_a_further_metric_is_one_entry(tmp_path: Path) -> None:
    """With it written into the table, tables, CSV, JSON, terms and screen have it."""
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    folder = made_campaign(tmp_path / "x", HAND)
    screen = subprocess.run(
        [sys.executable, "-c", WITH_FURTHER, str(folder), FURTHER],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert screen.count("paths tried, n") == 2  # of endings and of effort
    report = folder / "report"
    told = json.loads((report / "report.json").read_text())["overall"]
    assert told["figures"]["none"]["paths_tried"]["value"] == 2.0
    assert told["figures"]["sobel"]["longest_m"] == 2.0
    assert told["against"]["sobel"]["metrics"]["paths_tried"]["estimate"]["value"] == 1.0
    with open(report / "summary.csv") as file:
        line = list(csv.DictReader(file))[-1]
    assert (line["paths_tried"], line["longest_m"]) == ("2.0", "2.0")
    assert (line["versus_paths_tried"], line["versus_paths_tried_all_cycles"]) == ("1.0", "1.0")
    for name, terms in (("report.md", 0), ("report.html", 1)):
        text = (report / name).read_text()
        assert text.count("paths tried, n") == 3 + terms  # headline, terrain and time
        assert "paths, times fewer, all cycles" in text
        assert text.count("Paths taken off the ranked lists, a cycle.") == terms
    assert "paths, times fewer" in (folder / "compared" / "compare.md").read_text()


# ---------------------------------------------------------------------------------- by hand


def test_figures_by_hand() -> None:
    (level, steep), overall = (a := analysed(HAND)).terrains, a.overall
    none, sobel = level.figures["none"], level.figures["sobel"]
    assert none.rate("success") == Rate(1, 2)
    assert none.counts("outcomes") == {"goal_reached": 1, "stuck": 1}
    assert none.number("evaluations") == 125.0
    assert (none.number("evaluations_median"), none.number("evaluations_max")) == (80.0, 300.0)
    assert none.number("overthink") == 0.25
    assert none.number("floor") == 20.0
    assert none.number("over_floor") == pytest.approx(125 / 20)
    assert none.number("evaluations_per_m") == pytest.approx(125)
    assert none.counts("rejects") == {"tilt": 4}
    assert none.number("plan_ms") == pytest.approx(1.0)  # not the simulation's stages
    assert level.stage_ms["none"]["sense"] == pytest.approx(2 * 9000 / 4)
    assert none.number("flight_ace_s") == pytest.approx(1.25)
    assert sobel.number("floor") == pytest.approx((25 + 30 + 30) / 3)  # of cycles with a path
    assert (sobel.number("inferences"), sobel.number("risk_used")) == (0.25, 0.5)
    assert sobel.estimate("inefficiency").value == pytest.approx(0.2)
    assert (none.number("trials"), none.number("cycles")) == (2, 4)
    assert steep.figures["none"].number("driven_km") == pytest.approx(0.002)

    beside = level.against["sobel"]
    assert (beside.pairs, beside.both) == (2, 1)
    assert beside.metrics["evaluations"].estimate.value == pytest.approx(200 / 50)
    assert beside.metrics["evaluations"].all_cycles.value == pytest.approx(125 / 35)
    assert beside.metrics["inefficiency"].estimate.value == pytest.approx(0.2)
    assert beside.metrics["plan_ms"].estimate.value == pytest.approx(1.0)
    assert (beside.metrics["success"].only_this, beside.metrics["success"].only_first) == (1, 0)
    whole = overall.against["sobel"].metrics
    assert whole["evaluations"].estimate.value == pytest.approx((420 / 4) / (140 / 4))
    assert whole["evaluations"].estimate.interval is None  # of three pairs
    assert whole["inefficiency"].estimate.value == pytest.approx((0.2 - 0.4) / 3)


def test_runs_that_never_moved_have_no_figures() -> None:
    gone = FAILED | {"outcome": "start_unsafe", "driven_m": 0.0}
    analysis = analysed([made_trial("0/.05", 0, c, [], **gone) for c in ("none", "sobel")])
    found = analysis.overall.figures["none"]
    for name in ("evaluations", "evaluations_p95", "floor", "over_floor", "plan_ms", "overthink",
                 "unsafe_per_km", "evaluations_per_m", "inefficiency", "inferences"):  # fmt: skip
        assert found.number(name) is None, name
    assert found.rate("success").hits == 0
    versus = analysis.overall.against["sobel"].metrics["evaluations"]
    assert (versus.estimate, versus.all_cycles) == (Estimate(None, None, 0),) * 2


def test_unsafe_trials_by_hand() -> None:
    none = [
        made_trial("0/.05", 0, "none", [9] * 50, **FAILED | {"outcome": "unsafe_state"},
                   unsafe_states=5, unsafe_constraint="relief"),
        made_trial("0/.05", 1, "none", [9] * 50, success=False, unsafe_states=1,
                   unsafe_constraint="tilt"),
        made_trial("0/.05", 2, "none", [9] * 50, **FAILED | {"outcome": "no_safe_path"},
                   unsafe_states=0),
        made_trial("0/.05", 3, "none", [9] * 50, **FAILED | {"outcome": "high_centred"}),
    ]  # fmt: skip
    found = figures(Runs(made_runs(none)))
    assert found.rate("unsafe") == Rate(3, 4)
    assert found["unsafe_per_km"] == PerExposure(3, 0.2)
    assert found.number("unsafe_per_km") == 15.0
    assert found.number("unsafe_states_per_km") == pytest.approx(6 / 0.15)  # of those that tell
    assert found.counts("causes") == {"relief": 1, "tilt": 1, "high_centred": 1}
    assert found.number("no_safe_path") == 1
    assert found.rate("success").hits == 0


def test_unsafe_rates_are_tested_by_mcnemar_and_holm() -> None:
    rng = np.random.default_rng(8)
    lost = FAILED | {"outcome": "unsafe_state", "unsafe_states": 1}
    trials, unsafe = [], {}
    for terrain in ("0/.05", "10/.05", "20/.05"):
        for name, share in (("none", 0.7), ("sobel", 0.5), ("failures", 0.2)):
            hits = unsafe[terrain, name] = rng.random(30) < share
            trials += [
                made_trial(terrain, i, name, [30], **(lost if hit else {}))
                for i, hit in enumerate(hits)
            ]
    analysis = analysed(trials)
    tests, expected = [], []
    for block in analysis.terrains:
        for name, beside in block.against.items():
            first, this = unsafe[block.label, "none"], unsafe[block.label, name]
            tests.append(beside.metrics["unsafe"])
            table = [[(first & this).sum(), (first & ~this).sum()],
                     [(~first & this).sum(), (~first & ~this).sum()]]  # fmt: skip
            expected.append(mcnemar(table, exact=True).pvalue)
            assert (tests[-1].only_first, tests[-1].only_this) == (table[0][1], table[1][0])
            assert tests[-1].estimate.value == pytest.approx(this.mean() - first.mean())
    assert [t.p for t in tests] == pytest.approx(expected)
    assert [t.p_holm for t in tests] == pytest.approx(multipletests(expected, method="holm")[1])
    assert len(tests) == 6 and min(t.p_holm for t in tests) < 0.05
    # All terrains together are a family of their own.
    both = [a.metrics["unsafe"] for a in analysis.overall.against.values()]
    assert [t.p_holm for t in both] == pytest.approx(
        multipletests([t.p for t in both], method="holm")[1]
    )


# ------------------------------------------------------------------------------------ kinds


def reduced(m: Metric, runs: list[Run]) -> Any:
    return figures(Runs(runs), [m])[m.name]


def test_each_kind_is_reduced_and_compared_in_its_way() -> None:
    rng = np.random.default_rng(4)
    trials = [
        made_trial(
            terrain, i, name, rng.integers(20, 90, rng.integers(3, 9)).tolist(),
            **({} if rng.random() < 0.8 else FAILED),
        )
        for terrain in ("0/.05", "20/.05") for i in range(8) for name in ("none", "sobel")
    ]  # fmt: skip
    runs = made_runs(trials)
    first, this = ([r for r in runs if r.row["contender"] == n] for n in ("none", "sobel"))
    pairs = list(zip(first, this, strict=True))
    both = [p for p in pairs if p[0].success and p[1].success]
    assert 5 < len(both) < len(pairs)
    strata = [0] * 8 + [1] * 8

    rate = Metric("x", "x", "", "", Kind.RATE, lambda run: run.number("cycles") > 5)
    long = [r.number("cycles") > 5 for r in this]
    assert reduced(rate, this) == Rate(sum(long), 16)
    assert compared(rate, pairs).estimate.value == pytest.approx(
        np.mean(long) - np.mean([r.number("cycles") > 5 for r in first])
    )
    assert compared(rate, []).p is None

    total = Metric("x", "x", "", "", Kind.PER_CYCLE, lambda run: run.number("ace_evaluations"))
    sums, cycles = ([r.number(c) for r in this] for c in ("ace_evaluations", "cycles"))
    assert reduced(total, this) == pooled_mean(sums, cycles, strata)
    columns = [
        [p[i].number(c) for p in both] for i in (0, 1) for c in ("ace_evaluations", "cycles")
    ]
    at = [("0/.05", "20/.05").index(p[1].row["terrain"]) for p in both]
    versus = compared(total, pairs)
    assert versus.estimate == paired_ratio(*columns, at)
    assert versus.all_cycles.n == 16 and versus.p is None

    mean = Metric("x", "x", "", "", Kind.MEAN, lambda run: run.row["terrain"] == "0/.05" or None)
    assert reduced(mean, this) == paired_mean([1.0] * 8, [0] * 8)
    mean = Metric("x", "x", "", "", Kind.MEAN, lambda run: run.number("driven_m"))
    differences = [b.number("driven_m") - a.number("driven_m") for a, b in both]
    assert compared(mean, pairs).estimate == paired_mean(differences, at)

    whole = Metric("x", "x", "", "", Kind.RUNS, lambda found: {"n": len(found.all)})
    assert reduced(whole, this) == {"n": 16}

    # Over different samples of trials.
    ratio = compared_unpaired(total, Runs(first), Runs(this[:5]))
    assert ratio.estimate.value == pytest.approx(
        reduced(total, first).value / reduced(total, this[:5]).value
    )
    assert compared_unpaired(rate, Runs(first), Runs(this)).p is None
    assert compared_unpaired(mean, Runs(first), Runs(this)).estimate.value is None


# -------------------------------------------------------------------------- modelled flight time


def made_counts(tmp_path: Path, **network: float) -> Instructions:
    stages = dict.fromkeys(STAGES, 10) | {"set_map": {"fixed_box": 1000}}
    path = tmp_path / "counts.json"
    checkers = {"fixed_box/enav_like": {"pass": 3, "reject": 2}}
    path.write_text(
        json.dumps(
            {"network": network, "stages": stages, "checkers": checkers, "assumptions": "made up"}
        )
    )
    counts = load_instructions(path)
    assert counts is not None
    return counts


def test_counted_instructions_enter_the_analysis(tmp_path) -> None:
    analysis = analysed(HAND, made_counts(tmp_path, sobel=500))
    assert "made up" in analysis.assumptions[1]
    # A set map, 5 stages of 10 a cycle where there was risk and rankings without it before.
    none = 6 * (1000 + 4 * 10) + 3 * 520 - 6 + 10 * 12
    sobel = 6 * (1000 + 2 * 10) + 5 * 20 + 2 * 30 + 1 * 500 + 3 * 180 - 6 + 10 * 12
    for name, expected in (("none", none), ("sobel", sobel)):
        assert analysis.overall.flight_s[name] == {
            "rad750_class": pytest.approx(expected / 6 / 200e6),
            "hpsc_class": pytest.approx(expected / 6 / 20e9),
        }
    assert [e.flight_note for e in analysis.entrants] == [None, None]


def test_a_contender_without_counts_says_so(tmp_path) -> None:
    analysis = analysed(HAND, made_counts(tmp_path))
    assert analysis.overall.flight_s["none"]["rad750_class"] > 0.0
    assert set(analysis.overall.flight_s["sobel"].values()) == {None}
    assert [e.flight_note is None for e in analysis.entrants] == [True, False]
    assert "'sobel'" in analysis.entrants[1].flight_note


def test_trials_of_another_network_have_no_flight_time() -> None:
    config = Config().replaced(checker="fixed_box", limits="enav_like", heuristic="network")
    model = FlightModel(config, load_instructions())
    if model.note is not None:
        pytest.skip(model.note)
    mine, other = (
        Runs(made_runs([made_trial("0/.05", 0, "network", [30], model=m)]))
        for m in (model.model, "0123")
    )
    assert flight_seconds(mine, model)[0]["rad750_class"] > 0.0
    assert flight_seconds(other, model) == (
        {"rad750_class": None, "hpsc_class": None},
        "its trials ran another model than is here now",
    )
