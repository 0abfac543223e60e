"""The report of a campaign: one HTML page that needs no network, Markdown, CSV and JSON.

Needs the extra `report`.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from mlnav.campaign.analysis import analyse
from mlnav.campaign.definition import CampaignError, Definition
from mlnav.campaign.differences import compare
from mlnav.campaign.figures import Analysis, Block, Comparison, Figures
from mlnav.campaign.store import Store
from mlnav.io import write_json, write_text
from mlnav.report.charts import (
    change_charts,
    charts_of,
    has_grid,
    looks,
    plotly_script,
    ratio_maps,
    success_maps,
    unsafe_maps,
)
from mlnav.report.stills import stills
from mlnav.sim.metrics import OUTCOMES
from mlnav.stats import Estimate, Rate
from mlnav.studies.instructions import PER_S, load_instructions
from mlnav.trials.safety import Safety

FILES = ("report.html", "report.md", "report.json", "summary.csv", "trials.csv")

COMPARED_FILES = ("compare.html", "compare.md", "compare.json")

LISTED_FAILURES = 200
"""On the page; trials.csv has all."""


def write_report(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, pictures: int = 6
) -> dict[str, Path]:
    """Write the report of a campaign, finished or not.

    `report.html` is one file that needs nothing else; `report.md` has its figures in text;
    `report.json` all of them; `summary.csv` a line a ground and contender; `trials.csv` a line a
    trial. (Cycles stay in the campaign's Parquet files: as text they would be a hundred times the
    size of all else.)

    Args:
        folder: of the campaign.
        out: folder to write to, replacing an earlier report; None: `report` in the campaign's.
        pictures: failures to drive again and draw, at most.

    Returns:
        Paths by name of file.

    Raises:
        CampaignError: there is no campaign, the folder cannot be written, or jinja2 or plotly is
            missing.
    """
    environment = _environment()
    store = Store(folder)
    store.require_own()
    trials, cycles = store.trials(), store.cycles()
    analysis = analyse(trials, cycles, store.definition, store.damaged, load_instructions())
    page = _page(analysis, store, pictures)
    target = Path(out) if out is not None else Path(folder) / "report"
    paths = {name: target / name for name in FILES}
    try:
        write_text(paths["report.html"], environment.get_template("report.html.j2").render(page))
        write_text(paths["report.md"], environment.get_template("report.md.j2").render(page))
        write_json(paths["report.json"], analysis.as_dict())
        write_text(paths["summary.csv"], _csv(_summary(analysis)))
        write_text(paths["trials.csv"], _csv(map(_flat, trials.to_pylist()), trials.column_names))
    except OSError as fault:
        raise CampaignError(f"cannot write to {target}: {fault.strerror or fault}") from fault
    return paths


def compare_reports(
    before: str | os.PathLike[str], after: str | os.PathLike[str], out: str | os.PathLike[str]
) -> dict[str, Path]:
    """Write what changed from one campaign to another: a page, Markdown and JSON.

    Trials that have ground, number, seeds and dispersions in common are compared pair by pair;
    where there are none, the campaigns are compared as different samples, and the page says so.

    Args:
        before: folder of a campaign.
        after: of another.
        out: folder to write to, replacing an earlier comparison.

    Returns:
        Paths by name of file.

    Raises:
        CampaignError: as `write_report`.
    """
    environment = _environment()
    stores = Store(before), Store(after)
    for store in stores:
        store.require_own()
    comparison = compare(*stores)
    charts = change_charts(comparison)
    page = {
        "c": comparison,
        "sentences": {n: change_sentence(comparison, n) for n in comparison.contenders},
        "before": shlex.quote(os.fspath(before)),
        "after": shlex.quote(os.fspath(after)),
        "looks": looks(comparison.before),
        "charts": charts,
        "plotly": plotly_script() if charts else "",
        "blocks": [
            *comparison.grounds, *([comparison.overall] if len(comparison.grounds) > 1 else ()),
        ],
    }  # fmt: skip
    target = Path(out)
    paths = {name: target / name for name in COMPARED_FILES}
    try:
        for name, template in (
            ("compare.html", "compare.html.j2"),
            ("compare.md", "compare.md.j2"),
        ):
            write_text(paths[name], environment.get_template(template).render(page))
        write_json(paths["compare.json"], comparison.as_dict())
    except OSError as fault:
        raise CampaignError(f"cannot write to {target}: {fault.strerror or fault}") from fault
    return paths


def _page(analysis: Analysis, store: Store, pictures: int) -> dict[str, Any]:
    charts = charts_of(analysis)
    drawn = stills(store.folder, analysis.failures, pictures) if pictures else []
    folder = shlex.quote(os.fspath(store.folder))
    grid = has_grid(analysis)
    return {
        "a": analysis,
        "definition": store.definition,
        "folder": folder,
        "provenance": store.provenance,
        "facts": facts(analysis, store.definition),
        "sentences": {e.name: sentence(analysis, e.name) for e in analysis.entrants},
        "blocks": [*analysis.grounds, *([analysis.overall] if len(analysis.grounds) > 1 else [])],
        "looks": looks(analysis),
        "charts": charts,
        "unsafe_maps": unsafe_maps(analysis) if grid and analysis.trials else [],
        "success_maps": success_maps(analysis) if grid and analysis.trials else [],
        "ratio_maps": ratio_maps(analysis) if grid and "ratio" in charts else [],
        "plotly": plotly_script() if charts else "",
        "endings": _endings(analysis),
        "meanings": OUTCOMES,
        "stills": [(s, None if s.jpeg is None else _data_uri(s.jpeg)) for s in drawn],
        "pictured": {s.failure.key for s in drawn},
        "replay": lambda key: f"mlnav replay {key} --campaign {folder}",
        "computers": {name: _computer(name) for name in PER_S},
        "listed": analysis.failures[:LISTED_FAILURES],
        "configs": {
            c.name: store.definition.config_of(c).to_yaml() for c in store.definition.contenders
        },
        "yaml": store.definition.to_yaml(),
    }


def _computer(name: str) -> str:
    model, _, kind = name.partition("_")
    return f"{model.upper()}-{kind}"


def _endings(analysis: Analysis) -> list[str]:
    """Endings that occur, most frequent first."""
    counts: Counter[str] = Counter()
    for figures in analysis.overall.figures.values():
        counts.update(figures.outcomes)
    return [name for name, _ in counts.most_common()]


def _data_uri(jpeg: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


# ------------------------------------------------------------------------------------ in words


def facts(analysis: Analysis, definition: Definition) -> list[tuple[str, str]]:
    """What was run: (what, how)."""
    entrants = analysis.entrants

    def each(part: str) -> str:
        return ", ".join(dict.fromkeys(getattr(e, part) for e in entrants))

    size = f"{analysis.trials:,} of {analysis.planned:,}"
    return [
        ("Trials", f"{size}, at most {definition.trials:,} of each ground with each contender"),
        ("Grounds", f"{len(analysis.grounds)}"),
        ("Contenders", ", ".join(e.name for e in entrants)),
        ("Planner", each("planner")),
        ("Checker, limits", f"{each('checker')}, {each('limits')}"),
        ("World, sensor, localization",
         f"{each('world')}, {each('sensor')}, {each('localization')}"),
        ("Campaign seed", f"{analysis.seed}"),
    ]  # fmt: skip


def sentence(analysis: Analysis, name: str) -> str:
    """A contender in plain words."""
    f = analysis.overall.figures[name]
    if not f.trials:
        return "has no trials."
    low, high = f.success.interval or (0.0, 1.0)
    told = (
        f"reaches the goal in {f.success.hits:,} of {f.trials:,} trials"
        f" ({100 * (f.success.value or 0.0):.0f} %, 95 % interval {100 * low:.0f} to"
        f" {100 * high:.0f} %)"
    )
    mean = f.evaluations.mean.value
    if mean is not None:
        told += f" and spends {mean:.0f} ACE evaluations a cycle"
    if f.over_floor is not None and f.floor is not None:
        told += f", {f.over_floor:.1f} times the {f.floor:.0f} that proving its paths alone takes"
    told += f". {_unsafe(f.safety)}."
    return told + (_against(analysis, name) if name != analysis.first else "")


def _unsafe(safety: Safety) -> str:
    """Unsafe runs in a sentence without its full stop."""
    rate = safety.unsafe
    low, high = (100 * v for v in rate.interval or (0.0, 1.0))
    told = (
        f"Unsafe: {rate.hits:,} of {rate.trials:,} trials ({100 * (rate.value or 0.0):.1f} %,"
        f" 95 % interval {low:.1f} to {high:.1f} %"
    )
    if safety.unsafe_per_km is not None:
        told += f"; {safety.unsafe_per_km:.2f} per driven km"
    return told + ")"


def _against(analysis: Analysis, name: str) -> str:
    a, first = analysis.overall.against[name], analysis.first
    told = ""
    if a.ratio.value is None:
        told += f" There are no pairs where it and {first} both arrive, so no ratio."
    else:
        told += f" Where it and {first} both arrive ({_count(a.both, 'pair')}) it"
        told += f" {_effort(a.ratio, a.detour)}."
    if a.p_holm is not None:
        told += f" Of {_count(a.pairs, 'pair')}, {a.only_this} arrive only with it and"
        told += f" {a.only_first} only with {first}{_chance(a.only_this + a.only_first, a.p_holm)}."
    return told


def change_sentence(comparison: Comparison, name: str) -> str:
    """What changed of a contender, in plain words."""
    x, whole = comparison.overall.changes[name], comparison.overall
    then, now = whole.before[name].success, whole.after[name].success
    told = f"reaches the goal in {now.hits:,} of {now.trials:,} trials after,"
    told += f" {then.hits:,} of {then.trials:,} before"
    before, after = whole.before[name].safety.unsafe, whole.after[name].safety.unsafe
    told += f"; unsafe are {after.hits:,} of {after.trials:,} trials after,"
    told += f" {before.hits:,} of {before.trials:,} before"
    if not x.paired:
        told += f". Success differs by {number(x.success.value, 0, 100.0, True)} percentage points"
        return f"{told}{_interval(x.success, 100.0, 0)}. No trial is the same."
    told += f". Of {_count(x.pairs, 'pair')}, {x.only_after} arrive only after and"
    told += f" {x.only_before} only before"
    if x.p_holm is not None:
        told += _chance(x.only_after + x.only_before, x.p_holm)
    told += f"; {x.same:,} went the same way to the last evaluation."
    if x.ratio.value is not None:
        told += f" Where it arrives both times ({_count(x.both, 'pair')}) it now"
        told += f" {_effort(x.ratio, x.detour)}."
    return told


def _chance(differ: int, p: float) -> str:
    if not differ:
        return ""
    could = "would rarely" if p < 0.05 else "could"
    return f", which chance {could} do (p\u00a0{p_of(p)})"


def _effort(ratio: Estimate, detour: Estimate) -> str:
    """What it needs, and how long its way is."""
    assert ratio.value is not None
    fewer = ratio.value >= 1.0
    times = ratio if fewer else _mapped(ratio, lambda v: 1.0 / v)
    told = f"needs {times.value:.2f} times {'fewer' if fewer else 'more'} ACE evaluations a cycle"
    told += _sure(times, 1.0, 2)
    if detour.value is not None:
        longer = detour.value >= 0.0
        share = _mapped(detour, lambda v: 100.0 * v if longer else -100.0 * v)
        told += f", on a way that is {'longer' if longer else 'shorter'} by {share.value:.1f} % of"
        told += f" the straight line{_sure(share, 0.0, 1, ' %')}"
    return told


def _mapped(estimate: Estimate, to: Callable[[float], float]) -> Estimate:
    """By a function that rises or falls throughout."""
    assert estimate.value is not None
    interval = estimate.interval
    if interval is not None:
        low, high = sorted(map(to, interval))
        interval = low, high
    return Estimate(to(estimate.value), interval, estimate.n)


def _sure(estimate: Estimate, neutral: float, digits: int, unit: str = "") -> str:
    """The interval, and whether the difference may be none."""
    if estimate.interval is None:
        return " (too few, or all alike, for an interval)"
    low, high = estimate.interval
    doubt = ", not a sure difference" if low <= neutral <= high else ""
    return f" ({low:z.{digits}f} to {high:z.{digits}f}{unit}{doubt})"


def _interval(estimate: Estimate, scale: float, digits: int, unit: str = "") -> str:
    if estimate.interval is None:
        return ""
    low, high = (f"{scale * v:z.{digits}f}" for v in estimate.interval)
    return f" ({low} to {high}{unit})"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


# --------------------------------------------------------------------------------- numbers in text


def number(value: float | None, digits: int = 0, scale: float = 1.0, sign: bool = False) -> str:
    """A number of a table; a dash where there is none."""
    if value is None:
        return "–"
    return f"{scale * value:+z,.{digits}f}" if sign else f"{scale * value:z,.{digits}f}"


def interval(
    estimate: Estimate | Rate, digits: int = 0, scale: float = 1.0, sign: bool = False
) -> str:
    """The interval of a figure; nothing where there is none."""
    if estimate.interval is None:
        return ""
    low, high = (number(v, digits, scale, sign) for v in estimate.interval)
    return f"[{low}, {high}]"


def p_value(p: float | None) -> str:
    """A p value; a dash where there is none."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_of(p: float) -> str:
    """A p value in a sentence."""
    told = p_value(p)
    return told if told.startswith("<") else f"= {told}"


def words(name: str) -> str:
    """A name of the records as words."""
    return name.replace("_", " ")


def seconds(value: float | None) -> str:
    """A time, in what suits it."""
    if value is None:
        return "–"
    return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.1f} ms"


def markdown_cell(value: object) -> str:
    """Text that cannot break a table or turn into a tag."""
    text = " ".join(str(value).split())
    for mark in ("\\", "|", "`"):
        text = text.replace(mark, "\\" + mark)
    return text.replace("<", "&lt;")


# ------------------------------------------------------------------------------------- templates


def _environment() -> Any:
    """Templates of the package.

    Raises:
        CampaignError: jinja2 or plotly is missing.
    """
    try:
        import jinja2
        import plotly  # noqa: F401
    except ImportError as fault:
        raise CampaignError(
            f"reports need {fault.name}: pip install 'mlnav[report]' (extra `report`)"
        ) from fault

    def source(name: str) -> str:
        return (files("mlnav.report") / "templates" / name).read_text("utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Callable[..., str]] = {
        "n": number,
        "ci": interval,
        "p": p_value,
        "words": words,
        "seconds": seconds,
        "cell": markdown_cell,
    }
    environment.filters.update(filters)
    return environment


# ------------------------------------------------------------------------------------------ CSV


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows with a heading; none without rows or columns."""
    listed = list(rows)
    names = columns if columns is not None else list(listed[0]) if listed else []
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of a row as JSON."""
    return {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}


def _summary(analysis: Analysis) -> list[dict[str, Any]]:
    """A line a ground and contender, `all` last."""
    blocks = [*analysis.grounds, analysis.overall]
    return [_line(b, name, f) for b in blocks for name, f in b.figures.items()]


def _line(block: Block, name: str, f: Figures) -> dict[str, Any]:
    line = {
        "ground": block.label or "all",
        "slope_deg": block.slope_deg,
        "cfa": block.cfa,
        "contender": name,
        "trials": f.trials,
        "unsafe_runs": f.safety.unsafe.hits,
        **_columns("unsafe", f.safety.unsafe),
        "unsafe_per_km": f.safety.unsafe_per_km,
        "unsafe_states": f.safety.unsafe_states,
        "unsafe_states_per_km": f.safety.unsafe_states_per_km,
        "driven_km": f.safety.driven_km,
        "successes": f.success.hits,
        **_columns("success", f.success),
        "cycles": f.cycles,
        **_columns("evaluations", f.evaluations.mean),
        "evaluations_median": f.evaluations.median,
        "evaluations_p95": f.evaluations.p95,
        "evaluations_max": f.evaluations.max,
        "evaluations_per_m": f.evaluations_per_m,
        **_columns("overthink", f.overthink),
        "floor": f.floor,
        "over_floor": f.over_floor,
        **_columns("inefficiency", f.inefficiency),
        "inferences": f.inferences,
        "plan_ms": f.plan_ms,
        "flight_ace_s": f.flight.ace_s,
        **{f"flight_{k}_s": (f.flight.instructions_s or {}).get(k) for k in PER_S},
    }
    against = block.against.get(name)
    for column in ("ratio", "ratio_all", "detour", "success_difference"):
        figure = getattr(against, column.removesuffix("_difference"), Estimate(None, None, 0))
        line |= _columns(column, figure)
    for column in ("pairs", "both", "only_first", "only_this", "p", "p_holm"):
        line[column] = getattr(against, column, None)
    return line


def _columns(name: str, figure: Estimate | Rate) -> dict[str, float | None]:
    low, high = figure.interval or (None, None)
    return {name: figure.value, f"{name}_low": low, f"{name}_high": high}
