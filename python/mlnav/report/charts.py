"""Interactive charts of a report, as plotly draws them; they need nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log2, log10
from typing import Any

from mlnav.campaign.analysis import Analysis, Block
from mlnav.campaign.differences import Comparison
from mlnav.report.tables import cell
from mlnav.stats import Estimate, Rate
from mlnav.trials.metrics import Metric, metric
from mlnav.trials.records import RELIABILITY_BINS
from mlnav.viz.style import GRID, INK, PAPER, SOFT_INK, contender_colours, folded

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon", "x")
_DASHES = ("dot", "dash", "solid", "longdash", "dashdot", "longdashdot")
_STAGES = {"sense": "#c9bfb8", "drive": "#e4deda", "heuristic": "#4d3f8f", "plan": "#9a8fd0"}
"""Stages of the simulation pale, those that a rover computes strong."""

_RATIO_SCALE = "BrBG"
"""Around 1, for the colour-blind as well: brown where more are needed, green where fewer."""

_LEGEND = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 13}}

_HOLLOW = "Hollow: no interval, of fewer than 5 pairs or of pairs that are all alike."


@dataclass(frozen=True)
class Chart:
    """A chart, ready for a page that holds plotly; its height in pixels."""

    name: str
    title: str
    says: str
    """What it shows, also for those who cannot see it."""
    height: int
    figure: str
    """Data, layout and configuration, as JSON that may stand in a script."""


@dataclass(frozen=True)
class Look:
    """How a contender is drawn, the same everywhere, and distinct without colours too."""

    colour: str
    symbol: str
    dash: str


def looks(analysis: Analysis) -> dict[str, Look]:
    """Of every contender."""
    colours = contender_colours({e.name: e.parts["heuristic"] for e in analysis.entrants})
    return {
        name: Look(colour, _SYMBOLS[i % len(_SYMBOLS)], _DASHES[i % len(_DASHES)])
        for i, (name, colour) in enumerate(colours.items())
    }


def plotly_script() -> str:
    """The library that draws them."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _chart(
    name: str, title: str, says: str, traces: list[dict[str, Any]], height: int, **layout: Any
) -> Chart:
    from plotly.io import to_json

    base = {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "margin": {"l": 8, "r": 12, "t": 34, "b": 8},
        "height": height,
        "autosize": True,
        "dragmode": False,  # a finger that scrolls the page must not zoom
        "hovermode": "closest",
        "legend": _LEGEND,
        "showlegend": True,
        "template": {"layout": {}},  # plotly's own is 7 kB a chart
    }
    useless = ["select2d", "lasso2d"]
    config = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": useless}
    figure = json.loads(to_json({"data": traces, "layout": base | layout}, validate=True))
    text = json.dumps(figure | {"config": config}, separators=(",", ":"))
    return Chart(f"chart-{name}", title, says, height, text.replace("<", "\\u003c"))


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 13, "color": SOFT_INK}, "standoff": 8},
        "gridcolor": GRID, "linecolor": SOFT_INK, "tickcolor": GRID, "ticks": "outside",
        "automargin": True, "zeroline": False, **more,
    }  # fmt: skip


def _error(below: list[float], above: list[float], look: Look) -> dict[str, Any]:
    return {
        "type": "data", "symmetric": False, "array": above, "arrayminus": below,
        "color": look.colour, "width": 0,
    }  # fmt: skip


def _upright(x: float) -> dict[str, Any]:
    line = {"color": SOFT_INK, "width": 1.5}
    return {"type": "line", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


# --------------------------------------------------------------------------- by ground, a dot each

FigureOf = Callable[[int, str], tuple[Estimate | Rate, str]]
"""A contender's figure in a row, and its text."""


def _forest(
    name: str, title: str, says: str, rows: Sequence[str], style: Mapping[str, Look],
    figure_of: FigureOf, axis: dict[str, Any], mark: float | None, scale: float = 1.0,
) -> Chart:  # fmt: skip
    """A dot with its interval for each contender, in a group for each row; the first row is all."""
    step = len(style) + 1.0
    traces = []
    for k, (contender, look) in enumerate(style.items()):
        points: list[tuple[Any, ...]] = []
        for i, row in enumerate(rows):
            figure, text = figure_of(i, contender)
            if (value := figure.value) is not None:
                low, high = figure.interval or (value, value)
                symbol = look.symbol if low < value or value < high else f"{look.symbol}-open"
                points.append((
                    scale * value, -(i * step + k), scale * (value - low), scale * (high - value),
                    f"{escape(row)}, {escape(contender)}<br>{text}", symbol,
                ))  # fmt: skip
        x, y, below, above, texts, symbols = ([p[i] for p in points] for i in range(6))
        traces.append({
            "type": "scatter", "mode": "markers", "name": escape(contender), "x": x, "y": y,
            "text": texts, "hovertemplate": "%{text}<extra></extra>",
            "marker": {"color": look.colour, "size": 9, "symbol": symbols},
            "error_x": _error(below, above, look) | {"thickness": 2},
        })  # fmt: skip
    lines = max(len(folded(row, 28)) for row in rows)
    middles = [-(i * step + 0.5 * (len(style) - 1)) for i in range(len(rows))]
    edges = [-(i * step - 1.0) for i in range(1, len(rows))]
    shapes = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "layer": "below",
         "line": {"color": SOFT_INK if i == 0 else GRID, "width": 1}}
        for i, y in enumerate(edges)
    ]  # fmt: skip
    if mark is not None:
        shapes.append(_upright(mark) | {"layer": "below"})
    return _chart(
        name, title, says, traces,
        height=int(96 + max(9 + 15 * len(style), 17 * lines) * len(rows)),
        xaxis=_axis(**axis),
        yaxis={
            "tickvals": middles, "ticktext": [_lines(row) for row in rows],
            "automargin": True, "range": [-(len(rows) * step - 1.0), 1.0],
            "showgrid": False, "zeroline": False,
        },
        shapes=shapes,
    )  # fmt: skip


def _blocks(analysis: Analysis) -> list[Block]:
    """All terrains, then each where there are several."""
    return [analysis.overall, *(analysis.terrains if len(analysis.terrains) > 1 else ())]


def _rows(blocks: Sequence[Block]) -> list[str]:
    return ["all terrains" if b.label is None else b.label for b in blocks]


def _lines(label: str) -> str:
    """A label as lines that fit next to a chart; nothing is cut off."""
    return "<br>".join(escape(line) for line in folded(label, 28))


def rate_chart(analysis: Analysis, m: Metric) -> Chart:
    """A rate by terrain and contender."""
    blocks = _blocks(analysis)

    def figure_of(i: int, name: str) -> tuple[Rate, str]:
        rate = blocks[i].figures[name].rate(m.name)
        return rate, f"{rate.hits} of {rate.trials}: {rate.text(m.digits)}"

    ends = [i[1] for b in blocks for f in b.figures.values() if (i := f.rate(m.name).interval)]
    return _forest(
        m.name, f"Trials: {m.title}",
        f"Share of trials, with 95 % Wilson intervals, by terrain and contender. {m.definition}"
        " Where there is none, the end of the interval still bounds the rate.",
        _rows(blocks), looks(analysis), figure_of,
        {"title": f"{m.title} (%)", "range": [-2, 100.0 * max(ends, default=1.0) + 2]}, None,
        scale=m.scale,
    )  # fmt: skip


def versus_charts(analysis: Analysis) -> list[Chart]:
    """By terrain, against the first: how many times fewer evaluations, and what it costs in way."""
    blocks, first = _blocks(analysis), analysis.first
    style = {name: look for name, look in looks(analysis).items() if name != first}
    return [
        _forest(
            "ratio", "How many times fewer ACE evaluations",
            f"ACE evaluations a cycle of {first} over those of each contender, on pairs where"
            " both reach the goal, with 95 % bootstrap intervals: beyond the line at 1 the"
            f" contender needs fewer. {_HOLLOW}",
            _rows(blocks), style, _versus(blocks, "evaluations", 2, pairs=True),
            _ratio_axis(f"times fewer than {escape(first)} (log scale)", blocks), 1.0,
        ),
        _forest(
            "detour", "What it costs in way",
            f"Path inefficiency of each contender less that of {first}, on pairs where both reach"
            " the goal, with 95 % bootstrap intervals: beyond the line at 0 the contender drives"
            f" further. {_HOLLOW}",
            _rows(blocks), style, _versus(blocks, "inefficiency", 3, pairs=True, sign=True),
            {"title": f"inefficiency, less that of {escape(first)}"}, 0.0,
        ),
    ]  # fmt: skip


def change_charts(comparison: Comparison) -> dict[str, Chart]:
    """What changed between two campaigns, by terrain and contender."""
    now = [b for _, b in comparison.blocks][::-1]  # all together first
    style = {n: look for n, look in looks(comparison.before).items() if n in comparison.contenders}

    def known(name: str) -> bool:
        return any(c.metrics[name].estimate.value is not None for c in comparison.changes.values())

    charts = [
        _forest(
            f"change-{name}", f"{title.capitalize()}, after less before",
            "Difference of rates in percentage points, with 95 % Newcombe intervals.",
            _rows(now), style, _versus(now, name, 2, sign=True),
            {"title": f"{title}, after less before (%)"}, 0.0, scale=100.0,
        )
        for name, title in ((n, metric(n).title) for n in ("unsafe", "success") if known(n))
    ]  # fmt: skip
    if known("evaluations"):
        charts.append(_forest(
            "change-ratio", "ACE evaluations, before over after",
            "ACE evaluations a cycle before over after, with 95 % bootstrap intervals: beyond the"
            f" line at 1, fewer are needed after. {_HOLLOW}",
            _rows(now), style, _versus(now, "evaluations", 2),
            _ratio_axis("times fewer than before (log scale)", now), 1.0,
        ))  # fmt: skip
    return {chart.name: chart for chart in charts}


def _versus(
    blocks: Sequence[Block], name: str, digits: int, *, pairs: bool = False, sign: bool = False
) -> FigureOf:
    """Of a metric against the first contender, or the campaign before; over pairs or trials."""

    def figure_of(i: int, contender: str) -> tuple[Estimate, str]:
        against = blocks[i].against[contender]
        estimate = against.metrics[name].estimate
        n = f"{against.both} pairs" if pairs else f"{estimate.n} trials"
        return estimate, f"{cell(estimate, digits, 1.0, sign)}, {n}"

    return figure_of


def _ratio_axis(title: str, blocks: Sequence[Block]) -> dict[str, Any]:
    ratios = [a.metrics["evaluations"].estimate for b in blocks for a in b.against.values()]
    values = [v for r in ratios for v in (r.value, *(r.interval or ())) if v is not None and v > 0]
    return {"title": title, **_log_ticks(min([0.9, *values]), max([2.0, *values]))}


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Round numbers for a log scale, few enough for a phone."""
    steps: tuple[float, ...] = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
    if high / low > 8:
        steps = (1, 2, 5) if high / low < 80 else (1, 3)
    ticks = [s * 10.0**k for k in range(-4, 8) for s in steps]
    ticks = [t for t in ticks if low / 2 <= t <= 2 * high]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{t:,.10g}" for t in ticks]}


# --------------------------------------------------------------------------------- distributions


def effort_chart(analysis: Analysis) -> Chart:
    """Distribution of evaluations a cycle, of all terrains or one."""
    blocks, style = _blocks(analysis), looks(analysis)
    traces, shown = [], []
    most = 10.0
    for i, block in enumerate(blocks):
        for name in block.figures:
            evaluations, shares = block.evaluations_ecdf[name]
            values = [max(v, 1.0) for v in evaluations]
            most = max([most, *values])
            shown.append(i)
            traces.append({
                "type": "scatter", "mode": "lines", "name": escape(name), "visible": i == 0,
                "x": values, "y": [round(100 * s, 3) for s in shares],
                "line": {"shape": "hv", "color": style[name].colour, "dash": style[name].dash,
                         "width": 2.5},
                "hovertemplate": f"{escape(name)}: %{{y:.1f}} % of cycles take at most %{{x}}"
                                 "<extra></extra>",
            })  # fmt: skip
    marks = sorted({e.overthink_evaluations for e in analysis.entrants})
    buttons = [
        {"label": _lines(row), "method": "restyle", "args": [{"visible": [s == i for s in shown]}]}
        for i, row in enumerate(_rows(blocks))
    ]
    menus = [{
        "buttons": buttons, "x": 1, "xanchor": "right", "y": 0.03, "yanchor": "bottom",
        "bgcolor": PAPER, "bordercolor": SOFT_INK, "direction": "up", "showactive": True,
    }]  # fmt: skip
    return _chart(
        "effort", "ACE evaluations of a cycle",
        "Share of planning cycles that take at most so many ACE evaluations, by contender; the"
        f" upright line is the threshold of overthinking, {', '.join(map(str, marks))} evaluations."
        " Further up and to the left is better.",
        traces, 420,
        xaxis=_axis("ACE evaluations (log scale)", tickangle=0, **_log_ticks(2.0, most)),
        yaxis=_axis("share of cycles (%)", range=[0, 101]),
        shapes=[_upright(m) for m in marks],
        annotations=[
            {"x": log10(m), "y": 0.02, "yref": "paper", "text": f"{m}", "showarrow": False,
             "xanchor": "left", "yanchor": "bottom", "xshift": 3, "font": {"color": SOFT_INK}}
            for m in marks
        ],
        updatemenus=menus if len(blocks) > 1 else [],
    )  # fmt: skip


# ------------------------------------------------------------------------------- slope by rocks


def _cells(analysis: Analysis) -> dict[tuple[float, float], Block]:
    return {
        (b.slope_deg, b.cfa): b
        for b in analysis.terrains
        if b.slope_deg is not None and b.cfa is not None
    }


def maps_of(analysis: Analysis) -> list[Chart]:
    """Over slope and rock cover, a map a contender: unsafe, success, and the reduction.

    None without classes enough for a map. Colours of the reduction are on a log scale around 1.
    """
    if len(_cells(analysis)) <= 2 or not analysis.trials:
        return []

    def share(name: str) -> Callable[[Block, str], tuple[float | None, str]]:
        def figure_of(block: Block, contender: str) -> tuple[float | None, str]:
            rate = block.figures[contender].rate(name)
            if rate.value is None:
                return None, ""
            return 100.0 * rate.value, f"{100 * rate.value:.0f} %<br>{rate.hits}/{rate.trials}"

        return figure_of

    def ratio(block: Block, contender: str) -> tuple[float | None, str]:
        a = block.against[contender]
        value = a.metrics["evaluations"].estimate.value
        if not value:
            return None, ""
        return log2(value), f"{value:.1f}x<br>{'1 pair' if a.both == 1 else f'{a.both} pairs'}"

    maps = [
        _map(f"{name}-map-{i}", f"{e.name}: {metric(name).title}",
             f"Share of trials of {e.name}, {metric(name).title}, over slope and rock cover.",
             analysis, e.name, share(name), {"colorscale": scale, "zmin": 0.0, "zmax": 100.0})
        for name, scale in (("unsafe", "Reds"), ("success", "Cividis"))
        for i, e in enumerate(analysis.entrants)
    ]  # fmt: skip
    if not any(a.metrics["evaluations"].estimate.value for a in analysis.overall.against.values()):
        return maps
    return maps + [
        _map(f"ratio-map-{i}", f"{name}: times fewer evaluations than {analysis.first}",
             f"ACE evaluations of {analysis.first} over those of {name}, where both reach the goal,"
             " over slope and rock cover.",
             analysis, name, ratio, {"colorscale": _RATIO_SCALE, "zmin": -3.0, "zmax": 3.0})
        for i, name in enumerate(analysis.others)
        if any(b.against[name].metrics["evaluations"].estimate.value for b in analysis.terrains)
    ]  # fmt: skip


def _map(
    name: str, title: str, says: str, analysis: Analysis, contender: str,
    figure_of: Callable[[Block, str], tuple[float | None, str]], scale: dict[str, Any],
) -> Chart:  # fmt: skip
    cells = _cells(analysis)
    slopes = sorted({slope for slope, _ in cells})
    covers = sorted({cover for _, cover in cells})
    figures = [
        [figure_of(cells[s, c], contender) if (s, c) in cells else (None, "") for s in slopes]
        for c in covers
    ]
    return _chart(
        name, title, says,
        [{
            "type": "heatmap",
            "x": [f"{s:g}°" for s in slopes],
            "y": [f"{100 * c:g} %" for c in covers],
            "z": [[value for value, _ in row] for row in figures],
            "text": [[text for _, text in row] for row in figures],
            "texttemplate": "%{text}",
            "hovertemplate": "slope %{x}, rocks on %{y}: %{text}<extra></extra>",
            "showscale": False, "xgap": 2, "ygap": 2, **scale,
        }],
        int(96 + 52 * len(covers)),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis=_axis("slope", type="category", showgrid=False),
        yaxis=_axis("rocks (CFA)", type="category", showgrid=False),
    )  # fmt: skip


# -------------------------------------------------------------------------------- risk and time


def reliability_chart(analysis: Analysis) -> Chart:
    """Predicted risk against how often ACE refused, and how many poses each dot stands for."""
    style = looks(analysis)
    traces: list[dict[str, Any]] = [{
        "type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip",
        "line": {"color": SOFT_INK, "width": 1.5, "dash": "dot"}, "name": "perfect",
    }]  # fmt: skip
    for name, reliability in analysis.reliability.items():
        dots = [b for b in reliability.bins if b.predicted is not None and b.refused.interval]
        values = [b.refused.value or 0.0 for b in dots]
        intervals = [b.refused.interval or (0.0, 0.0) for b in dots]
        below = [v - low for v, (low, _) in zip(values, intervals, strict=True)]
        above = [high - v for v, (_, high) in zip(values, intervals, strict=True)]
        share = [b.refused.trials / reliability.poses for b in dots]
        look = style[name]
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": escape(name),
            "x": [b.predicted for b in dots], "y": values,
            "error_y": _error(below, above, look),
            "marker": {"color": look.colour, "symbol": look.symbol, "size": 8},
            "line": {"color": look.colour, "dash": look.dash, "width": 1.5},
            "text": [f"{100 * s:.1f} % of {reliability.poses:,} poses" for s in share],
            "hovertemplate": f"{escape(name)}: predicted %{{x:.2f}}, refused %{{y:.2f}}"
                             "<br>%{text}<extra></extra>",
        })  # fmt: skip
        traces.append({
            "type": "bar", "x": [(i + 0.5) / RELIABILITY_BINS for i in range(RELIABILITY_BINS)],
            "y": [100 * b.refused.trials / reliability.poses for b in reliability.bins],
            "yaxis": "y2", "marker": {"color": look.colour}, "name": escape(name),
            "showlegend": False,
            "hovertemplate": f"{escape(name)}: %{{y:.1f}} % of poses<extra></extra>",
        })  # fmt: skip
    return _chart(
        "reliability", "Is the predicted risk true?",
        "Share of poses that ACE refused, against the risk that was predicted for them, with 95 %"
        " Wilson intervals; on the dotted line prediction and truth agree. Bars: how predictions"
        " spread.",
        traces, 480,
        xaxis=_axis("predicted risk", range=[-0.02, 1.02], anchor="y2"),
        yaxis=_axis("refused by ACE", range=[-0.03, 1.03], domain=[0.3, 1]),
        yaxis2=_axis("poses (%)", domain=[0, 0.2]),
        barmode="group", bargap=0.2,
    )  # fmt: skip


def time_chart(analysis: Analysis) -> Chart:
    """Wall time a cycle by stage."""
    names = [e.name for e in analysis.entrants]
    stage_ms = analysis.overall.stage_ms
    traces = [
        {
            "type": "bar", "orientation": "h", "name": stage, "y": [_lines(n) for n in names],
            "x": [stage_ms[n].get(stage) or 0.0 for n in names],
            "marker": {"color": colour, "line": {"color": PAPER, "width": 1}},
            "hovertemplate": f"%{{y}}, {stage}: %{{x:.2f}} ms<extra></extra>",
        }
        for stage, colour in reversed(_STAGES.items())
    ]  # fmt: skip
    return _chart(
        "time", "Wall time of a cycle",
        "Mean wall time of a planning cycle by stage on the machine that ran the campaign. Sense"
        " and drive are the simulation's; heuristic (inference included) and plan are what a rover"
        " computes.",
        traces, 110 + 38 * len(names),
        barmode="stack",
        xaxis=_axis("wall time of a cycle (ms)"),
        yaxis={"automargin": True, "autorange": "reversed"},
        legend=_LEGEND | {"traceorder": "normal"},
    )  # fmt: skip


def charts_of(analysis: Analysis) -> dict[str, Chart]:
    """All single charts that there is something for, by name."""
    made = []
    overall = analysis.overall
    if analysis.trials:
        made += [rate_chart(analysis, metric(name)) for name in ("unsafe", "success")]
    if any(a.metrics["evaluations"].estimate.value for a in overall.against.values()):
        made += versus_charts(analysis)
    if any(f.number("cycles") for f in overall.figures.values()):
        made += [effort_chart(analysis), time_chart(analysis)]
    if analysis.reliability:
        made.append(reliability_chart(analysis))
    return {chart.name.removeprefix("chart-"): chart for chart in made}
