"""The report of a campaign: one HTML page that needs no network, Markdown, CSV and JSON.

Needs the extra `report`.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlnav.campaign.analysis import VERSUS, Analysis, Block, analyse
from mlnav.campaign.definition import CampaignError
from mlnav.campaign.differences import compare
from mlnav.campaign.store import Store
from mlnav.io import write_json, write_text
from mlnav.report import tables
from mlnav.report.charts import change_charts, charts_of, looks, maps_of, plotly_script
from mlnav.report.sentences import change_sentence, facts, sentence
from mlnav.report.stills import drive_in_bounds, stills
from mlnav.report.tables import number, words
from mlnav.sim.records import OUTCOMES
from mlnav.stats import Estimate, PerExposure, Rate
from mlnav.trials.flight_time import load_instructions
from mlnav.trials.metrics import METRICS, NO_VERSUS

FILES = ("report.html", "report.md", "report.json", "summary.csv", "trials.csv")

COMPARED_FILES = ("compare.html", "compare.md", "compare.json")

LISTED_FAILURES = 200
"""On the page; trials.csv has all."""


class MissingLibraryError(CampaignError):
    """A library that reports need is not installed; the message names the extra."""


def analysis_of(store: Store) -> Analysis:
    """A campaign in numbers; CampaignError where its definition was changed after trials ran."""
    store.require_own()
    counts = load_instructions()
    return analyse(store.trials(), store.cycles(), store.definition, store.damaged, counts)


def write_report(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, pictures: int = 6
) -> dict[str, Path]:
    """Write the report of a campaign, finished or not.

    `report.html` is one file that needs nothing else; `report.md` has its figures in text;
    `report.json` all of them; `summary.csv` a line a terrain and contender; `trials.csv` a line a
    trial. CampaignError: no campaign, a folder that cannot be written, no jinja2 or plotly.

    Args:
        folder: of the campaign.
        out: folder to write to, replacing an earlier report; None: `report` in the campaign's.
        pictures: failures to drive again and draw, at most.

    Returns:
        Paths by name of file.
    """
    environment = _environment()
    store = Store(folder)
    analysis, trials = analysis_of(store), store.trials()
    page = _page(analysis, store, pictures)
    return _write(
        Path(out) if out is not None else Path(folder) / "report",
        {
            **{name: environment.get_template(f"{name}.j2").render(page) for name in FILES[:2]},
            "report.json": analysis.as_dict(),
            "summary.csv": _csv(
                _line(b, name) for b in (*analysis.terrains, analysis.overall) for name in b.figures
            ),
            "trials.csv": _csv(map(_flat, trials.to_pylist()), trials.column_names),
        },
    )


def compare_reports(
    before: str | os.PathLike[str], after: str | os.PathLike[str], out: str | os.PathLike[str]
) -> dict[str, Path]:
    """Write what changed from one campaign to another: a page, Markdown and JSON.

    Trials that have terrain, number, seeds and dispersions in common are compared pair by pair;
    where there are none, the campaigns are compared as different samples, and the page says so.
    Replaces an earlier comparison in `out`; returns paths by name of file. CampaignError as
    `write_report`.
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
        "changes": tables.changes(comparison),
        "sides": tables.sides(comparison),
    }
    texts = {n: environment.get_template(f"{n}.j2").render(page) for n in COMPARED_FILES[:2]}
    return _write(Path(out), texts | {"compare.json": comparison.as_dict()})


def _write(target: Path, contents: Mapping[str, Any]) -> dict[str, Path]:
    paths = {name: target / name for name in contents}
    try:
        for name, content in contents.items():
            (write_text if isinstance(content, str) else write_json)(paths[name], content)
    except OSError as fault:
        raise CampaignError(f"cannot write to {target}: {fault.strerror or fault}") from fault
    return paths


def _page(analysis: Analysis, store: Store, pictures: int) -> dict[str, Any]:
    charts = charts_of(analysis)
    drawn = stills(store.folder, analysis.failures, pictures) if pictures else []
    bounded = drive_in_bounds(store) if pictures else None
    folder = shlex.quote(os.fspath(store.folder))
    figures = analysis.overall.figures.values()
    outcomes = sorted({name for f in figures for name in f.counts("outcomes")})
    return {
        "a": analysis,
        "t": {
            make.__name__: make(analysis)
            for make in (
                tables.headline, tables.by_terrain, tables.versus, tables.endings, tables.refusals,
                tables.calibration, tables.times, tables.contenders,
            )
        },
        "folder": folder,
        "provenance": store.provenance,
        "facts": facts(analysis, store.definition),
        "sentences": {e.name: sentence(analysis, e.name) for e in analysis.entrants},
        "looks": looks(analysis),
        "charts": charts,
        "maps": maps_of(analysis),
        "plotly": plotly_script() if charts else "",
        "meanings": {e: OUTCOMES.get(e, "") for e in outcomes},
        "stills": [(s, None if s.jpeg is None else _data_uri(s.jpeg)) for s in drawn],
        "pictured": {s.failure.key for s in drawn},
        "bounded": bounded and (bounded[0], _data_uri(bounded[1])),
        "replay": lambda key: f"mlnav replay {key} --campaign {folder}",
        "listed": analysis.failures[:LISTED_FAILURES],
        "terms": [(m.heading, m.definition) for m in METRICS if m.definition and m.tables],
        "configs": {n: c.to_yaml() for n, c in store.definition.configs.items()},
        "yaml": store.definition.to_yaml(),
    }  # fmt: skip


def _data_uri(jpeg: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def markdown_cell(value: object) -> str:
    """Text that cannot break a table or turn into a tag."""
    return re.sub(r"([\\|`])", r"\\\1", " ".join(str(value).split())).replace("<", "&lt;")


def _environment() -> Any:
    """Templates of the package; MissingLibraryError without jinja2 or plotly."""
    try:
        import jinja2
        import plotly  # noqa: F401
    except ImportError as fault:
        raise MissingLibraryError(
            f"reports need {fault.name}: pip install 'mlnav[report]' (extra `report`)"
        ) from fault
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mlnav.report"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(n=number, words=words, cell=markdown_cell)
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


def _line(block: Block, name: str) -> dict[str, Any]:
    line = {
        "terrain": block.label or "all",
        "slope_deg": block.slope_deg,
        "cfa": block.cfa,
        "contender": name,
    }
    for m in METRICS:
        line |= _columns(m.name, block.figures[name][m.name])
    line |= {f"flight_{computer}_s": s for computer, s in block.flight_s[name].items()}
    against = block.against.get(name)
    line |= {k: getattr(against, k, None) for k in ("pairs", "both")}
    for m in VERSUS:
        versus = NO_VERSUS if against is None else against.metrics[m.name]
        line |= _columns(f"versus_{m.name}", versus.estimate)
        if m.kind.value == "per cycle":
            line |= _columns(f"versus_{m.name}_all_cycles", versus.all_cycles or versus.estimate)
        if m.kind.value == "rate":
            for column in ("only_first", "only_this", "p", "p_holm"):
                line[f"{m.name}_{column}"] = getattr(versus, column)
    return line


def _columns(name: str, figure: Any) -> dict[str, Any]:
    if isinstance(figure, Mapping):
        return {name: json.dumps(figure)}
    if not isinstance(figure, Estimate | Rate | PerExposure):
        return {name: figure}
    low, high = figure.interval or (None, None)
    hits = {f"{name}_hits": figure.hits} if isinstance(figure, Rate) else {}
    return {**hits, name: figure.value, f"{name}_low": low, f"{name}_high": high}
