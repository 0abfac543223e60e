"""Tables of a report, whose columns are read from the table of metrics.

A table is rows of cells; the page, the Markdown and the screen show the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlnav.campaign.analysis import PARTS, VERSUS, Against, Analysis, Block, Reliability
from mlnav.campaign.differences import Comparison
from mlnav.stats import Estimate, PerExposure, Rate
from mlnav.trials.flight_time import PER_S
from mlnav.trials.metrics import (
    EFFORT,
    ENDINGS,
    HEADLINE,
    TERRAIN,
    TIME,
    Figure,
    Figures,
    Kind,
    Metric,
    Versus,
    in_table,
    metric,
)

DASH = "–"


@dataclass(frozen=True)
class Cell:
    """A figure in text, and its interval where it has one."""

    text: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.interval}" if self.interval else self.text


@dataclass(frozen=True)
class Line:
    """A line of a table: the terrain, None for all together; the contender; and the figures."""

    terrain: str | None
    contender: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A table: what it shows, headings of the cells, and lines; a terrain's follow each other."""

    caption: str
    headings: Sequence[str]
    lines: Sequence[Line] = field(default_factory=tuple)
    by_terrain: bool = True

    @property
    def columns(self) -> int:
        """How many headings there are."""
        return len(self.headings)

    @property
    def groups(self) -> list[tuple[str, list[Line]]]:
        """Lines by terrain."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault("all" if line.terrain is None else line.terrain, []).append(line)
        return list(found.items())


# ------------------------------------------------------------------------------------ cells


def number(value: float | None, digits: int = 0, scale: float = 1.0, sign: bool = False) -> str:
    """A number of a table; a dash where there is none."""
    if value is None:
        return DASH
    return f"{scale * value:+z,.{digits}f}" if sign else f"{scale * value:z,.{digits}f}"


def cell(figure: Figure, digits: int = 0, scale: float = 1.0, sign: bool = False) -> Cell:
    """A figure with its interval."""
    if not isinstance(figure, Rate | Estimate | PerExposure):
        assert figure is None or isinstance(figure, int | float)
        return Cell(number(figure, digits, scale, sign))
    text = number(figure.value, digits, scale, sign)
    if figure.interval is None:
        return Cell(text)
    low, high = (number(v, digits, scale, sign) for v in figure.interval)
    return Cell(text, f"[{low}, {high}]")


def p_value(p: float | None) -> str:
    """A p value; a dash where there is none."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def words(name: str) -> str:
    """A name of the records as words."""
    return name.replace("_", " ")


def seconds(value: float | None) -> str:
    """A time, in what suits it."""
    if value is None:
        return DASH
    return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.1f} ms"


def _headings(metrics: Sequence[Metric]) -> list[str]:
    """Of metrics: rates have their counts before them."""
    return [h for m in metrics for h in ([m.title] if m.kind is Kind.RATE else []) + [m.heading]]


def _of(metrics: Sequence[Metric], figures: Figures) -> list[Cell]:
    found = []
    for m in metrics:
        figure = figures[m.name]
        if isinstance(figure, Rate):
            found.append(Cell(f"{figure.hits}/{figure.trials}"))
        found.append(cell(figure, m.digits, m.scale))
    return found


def _together(caption: str, headings: Sequence[str], cells: Mapping[str, Sequence[Cell]]) -> Table:
    """A table of all terrains together, a line a contender."""
    return Table(caption, headings, [Line(None, n, c) for n, c in cells.items()], by_terrain=False)


# ------------------------------------------------------------------------------------ tables


def headline(a: Analysis) -> Table:
    """All terrains together."""
    metrics = in_table(HEADLINE)
    more = [f"times fewer than {a.first}", "pairs"] if a.others else []

    def ratio(name: str) -> list[Cell]:
        versus = a.overall.against.get(name)
        if versus is None:
            return [Cell("1"), Cell(DASH)] if a.others else []
        return [cell(versus.metrics["evaluations"].estimate, 2), Cell(f"{versus.both}")]

    return _together(
        "All terrains together. Brackets are 95 % intervals.",
        [*_headings(metrics), *more],
        {n: [*_of(metrics, f), *ratio(n)] for n, f in a.overall.figures.items()},
    )


def for_screen(a: Analysis) -> list[Table]:
    """How runs ended, and what they took: narrow tables."""
    ended, effort = in_table(ENDINGS), in_table(EFFORT)

    def spent(b: Block, name: str) -> list[Cell]:
        other = b.against.get(name)
        ratio = Cell(DASH) if other is None else cell(other.metrics["evaluations"].estimate, 2)
        found = [Cell(c.text) for c in _of(effort, b.figures[name])]
        return [*found, ratio] if a.others else found

    lines = [(b, name) for b in a.blocks for name in b.figures]
    return [
        Table(
            "How trials ended; 95 % intervals",
            _headings(ended),
            [Line(b.label, name, _of(ended, b.figures[name])) for b, name in lines],
        ),
        Table(
            "What they took" + (f"; times fewer evaluations than {a.first}, where both arrive"
                                if a.others else ""),
            [*_headings(effort), *(["times fewer"] if a.others else [])],
            [Line(b.label, name, spent(b, name)) for b, name in lines],
        ),
    ]  # fmt: skip


def by_terrain(a: Analysis) -> Table:
    """Each contender on each terrain."""
    metrics = in_table(TERRAIN)
    return Table(
        "Each contender, over all its trials and cycles, whether it arrived or not.",
        _headings(metrics),
        [Line(b.label, n, _of(metrics, f)) for b in a.blocks for n, f in b.figures.items()],
    )


def _versus_headings(first: str, this: str, other: str) -> list[str]:
    found = []
    for m in VERSUS:
        found.append(m.versus)
        if m.kind is Kind.PER_CYCLE:
            found.append(f"{m.versus}, all cycles")
        if m.kind is Kind.RATE:
            found += [f"{m.title} alone: {this}, {other}", f"{m.title}: p adjusted"]
    return [first, "both arrive", *found]


def _versus_cells(a: Against) -> list[Cell]:
    found = [Cell("unpaired" if a.pairs is None else f"{a.pairs}"), Cell(f"{a.both}")]
    for m in VERSUS:
        v: Versus = a.metrics[m.name]
        if m.kind is Kind.PER_CYCLE:
            found += [cell(v.estimate, 2), cell(v.all_cycles, 2)]
        elif m.kind is Kind.RATE:
            alone = DASH if v.only_this is None else f"{v.only_this}, {v.only_first}"
            difference = cell(v.estimate, m.digits, m.scale, True)
            found += [difference, Cell(alone), Cell(p_value(v.p_holm))]
        else:
            found.append(cell(v.estimate, m.digits + 1, m.scale, True))
    return found


def versus(a: Analysis) -> Table:
    """Each contender compared with the first one."""
    return Table(
        f"Each compared with {a.first}, over the trials that both have. Times fewer or less:"
        f" {a.first}'s over this one's, where both arrive and over all cycles.",
        _versus_headings("pairs", "it", a.first),
        [Line(b.label, n, _versus_cells(x)) for b in a.blocks for n, x in b.against.items()],
    )


def times(a: Analysis) -> Table:
    """Time of a cycle."""
    metrics = in_table(TIME)
    return _together(
        "Mean of a planning cycle. Wall time, inference included, is of the machine that ran the"
        " campaign under its load at the time; flight times are modelled.",
        [*_headings(metrics), *(f"flight (b), {computer(name)}" for name in PER_S)],
        {
            n: [*_of(metrics, f), *(Cell(seconds(a.overall.flight_s[n].get(c))) for c in PER_S)]
            for n, f in a.overall.figures.items()
        },
    )


def computer(name: str) -> str:
    """A class of flight computer, as people write it."""
    model, _, kind = name.partition("_")
    return f"{model.upper()}-{kind}"


def calibration(a: Analysis) -> Table:
    """Predicted risk against ACE."""

    def line(r: Reliability) -> list[Cell]:
        shares = (Cell(number(v, 1, 100.0)) for v in (r.refused, r.predicted))
        return [Cell(number(r.poses)), Cell(number(r.ece, 3)), *shares]

    return _together(
        "Expected calibration error: mean distance of predicted risk and share refused, weighted by"
        " poses. Poses of one run are not independent: intervals are somewhat too narrow.",
        ["poses", "calibration error", "refused, %", "predicted, mean, %"],
        {n: line(r) for n, r in a.reliability.items()},
    )


def endings(a: Analysis) -> Table:
    """How trials ended, a column an ending, the most frequent first."""
    counts = {n: f.counts("outcomes") for n, f in a.overall.figures.items()}
    total = sum(map(Counter, counts.values()), Counter[str]())
    names = sorted(total, key=lambda name: (-total[name], name))
    return _together(
        "How trials ended, in numbers of trials.",
        list(map(words, names)),
        {n: [Cell(str(c.get(name, DASH))) for name in names] for n, c in counts.items()},
    )


def refusals(a: Analysis) -> Table:
    """Why ACE refused poses, and what was wrong at the end."""

    def line(f: Figures) -> list[Cell]:
        rejects, faults = f.counts("rejects"), f.counts("faults")
        refused = sum(rejects.values())
        most = {name: n for name, n in rejects.items() if n >= 0.005 * refused}
        why = (f"{words(name)} {100 * n / refused:.0f} %" for name, n in most.items())
        return [
            Cell(number(refused)), Cell(", ".join(why) or DASH),
            Cell(", ".join(f"{words(name)} {n}" for name, n in faults.items()) or DASH),
        ]  # fmt: skip

    return _together(
        "Why ACE refused poses: share of the refused poses by constraint, a pose under each of its"
        " own; and faults of the state where a trial ended.",
        ["refused poses", "for", "faults at the end (trials)"],
        {n: line(f) for n, f in a.overall.figures.items()},
    )


def contenders(a: Analysis) -> Table:
    """What the contenders are made of."""
    return _together(
        "What the contenders are made of.",
        [*PARTS, "model digests"],
        {
            e.name: [*(Cell(e.parts[p]) for p in PARTS), Cell(", ".join(e.models) or DASH)]
            for e in a.entrants
        },
    )


def changes(c: Comparison) -> Table:
    """What changed, over pairs."""
    return Table(
        "Over pairs: the same trial in both campaigns. Times fewer or less: before over after."
        " p by McNemar's exact test, adjusted by Holm's method for all tests of the table.",
        ["the same run", *_versus_headings("pairs", "after", "before")],
        [
            Line(now.label, n, [Cell(f"{x.same}"), *_versus_cells(x)])
            for _, now in c.blocks
            for n, x in now.against.items()
        ],
    )


def sides(c: Comparison) -> Table:
    """Each campaign alone."""
    metrics = [*in_table(HEADLINE), metric("plan_ms")]

    def line(name: str, then: Block, now: Block) -> Line:
        left, right = (_of(metrics, b.figures[name]) for b in (then, now))
        arrows = [Cell(f"{x} → {y}") for x, y in zip(left, right, strict=True)]
        return Line(now.label, name, arrows)

    return Table(
        "Each campaign alone, before → after, over all its trials.",
        _headings(metrics),
        [line(n, then, now) for then, now in c.blocks for n in c.contenders],
    )
