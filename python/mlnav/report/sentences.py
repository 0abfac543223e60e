"""A campaign in plain words."""

from __future__ import annotations

from collections.abc import Callable

from mlnav.campaign.analysis import Analysis
from mlnav.campaign.definition import Definition
from mlnav.campaign.differences import Comparison
from mlnav.report.tables import number, p_value
from mlnav.stats import Estimate
from mlnav.trials.metrics import Figures


def facts(analysis: Analysis, definition: Definition) -> list[tuple[str, str]]:
    """What was run: (what, how)."""

    def each(part: str) -> str:
        return ", ".join(dict.fromkeys(e.parts[part] for e in analysis.entrants))

    size = f"{analysis.trials:,} of {analysis.planned:,}"
    return [
        ("Trials", f"{size}, at most {definition.trials:,} of each terrain with each contender"),
        ("Terrains", f"{len(analysis.terrains)}"),
        ("Contenders", ", ".join(e.name for e in analysis.entrants)),
        ("Planner", each("planner")),
        ("Checker, limits", f"{each('checker')}, {each('limits')}"),
        ("World, sensor, localization",
         f"{each('world')}, {each('sensor')}, {each('localization')}"),
        ("Campaign seed", f"{analysis.seed}"),
    ]  # fmt: skip


def sentence(analysis: Analysis, name: str) -> str:
    """A contender in plain words."""
    f = analysis.overall.figures[name]
    success, floor, over = f.rate("success"), f.number("floor"), f.number("over_floor")
    if not success.trials:
        return "has no trials."
    low, high = success.interval or (0.0, 1.0)
    text = (
        f"reaches the goal in {success.hits:,} of {success.trials:,} trials"
        f" ({100 * (success.value or 0.0):.0f} %, 95 % interval {100 * low:.0f} to"
        f" {100 * high:.0f} %)"
    )
    mean = f.number("evaluations")
    if mean is not None:
        text += f" and spends {mean:.0f} ACE evaluations a cycle"
    if over is not None and floor is not None:
        text += f", {over:.1f} times the {floor:.0f} that proving its paths alone takes"
    text += f". {_unsafe(f)}."
    return text + (_against(analysis, name) if name != analysis.first else "")


def _unsafe(f: Figures) -> str:
    """Unsafe runs in a sentence without its full stop."""
    rate, per_km = f.rate("unsafe"), f.number("unsafe_per_km")
    low, high = (100 * v for v in rate.interval or (0.0, 1.0))
    text = (
        f"Unsafe: {rate.hits:,} of {rate.trials:,} trials ({100 * (rate.value or 0.0):.1f} %,"
        f" 95 % interval {low:.1f} to {high:.1f} %"
    )
    return text + (")" if per_km is None else f"; {per_km:.2f} per driven km)")


def _against(analysis: Analysis, name: str) -> str:
    a, first = analysis.overall.against[name], analysis.first
    ratio, success = a.metrics["evaluations"].estimate, a.metrics["success"]
    if ratio.value is None:
        text = f" There are no pairs where it and {first} both arrive, so no ratio."
    else:
        text = f" Where it and {first} both arrive ({_count(a.both, 'pair')}) it"
        text += f" {_effort(ratio, a.metrics['inefficiency'].estimate)}."
    if success.p_holm is not None and success.only_this is not None:
        only_this, only_first = success.only_this, success.only_first or 0
        text += f" Of {_count(a.pairs or 0, 'pair')}, {only_this} arrive only with it and"
        text += f" {only_first} only with {first}{_chance(only_this + only_first, success.p_holm)}."
    return text


def change_sentence(comparison: Comparison, name: str) -> str:
    """What changed of a contender, in plain words."""
    x = comparison.changes[name]
    then, now = (b.figures[name] for b in comparison.overall)

    def hits(name: str) -> str:
        after, before = now.rate(name), then.rate(name)
        text = f"{after.hits:,} of {after.trials:,} trials after, "
        return f"{text}{before.hits:,} of {before.trials:,} before"

    text = f"reaches the goal in {hits('success')}; unsafe are {hits('unsafe')}"
    change, ratio = x.metrics["success"], x.metrics["evaluations"].estimate
    if x.pairs is None:
        value, interval = change.estimate.value, change.estimate.interval
        text += f". Success differs by {number(value, 0, 100.0, True)} percentage points"
        if interval is not None:
            text += f" ({100.0 * interval[0]:z.0f} to {100.0 * interval[1]:z.0f})"
        return f"{text}. No trial is the same."
    only_after, only_before = change.only_this or 0, change.only_first or 0
    text += f". Of {_count(x.pairs, 'pair')}, {only_after} arrive only after and"
    text += f" {only_before} only before"
    if change.p_holm is not None:
        text += _chance(only_after + only_before, change.p_holm)
    text += f"; {x.same:,} went the same way to the last evaluation."
    if ratio.value is not None:
        text += f" Where it arrives both times ({_count(x.both, 'pair')}) it now"
        text += f" {_effort(ratio, x.metrics['inefficiency'].estimate)}."
    return text


def _chance(differ: int, p: float) -> str:
    if not differ:
        return ""
    could, shown = "would rarely" if p < 0.05 else "could", p_value(p)
    return f", which chance {could} do (p\u00a0{shown if shown.startswith('<') else f'= {shown}'})"


def _effort(ratio: Estimate, detour: Estimate) -> str:
    """What it needs, and how long its way is."""
    assert ratio.value is not None
    fewer = ratio.value >= 1.0
    times = ratio if fewer else _mapped(ratio, lambda v: 1.0 / v)
    text = f"needs {times.value:.2f} times {'fewer' if fewer else 'more'} ACE evaluations a cycle"
    text += _sure(times, 1.0, 2)
    if detour.value is not None:
        longer = detour.value >= 0.0
        share = _mapped(detour, lambda v: 100.0 * v if longer else -100.0 * v)
        text += f", on a way that is {'longer' if longer else 'shorter'} by {share.value:.1f} % of"
        text += f" the straight line{_sure(share, 0.0, 1, ' %')}"
    return text


def _mapped(estimate: Estimate, to: Callable[[float], float]) -> Estimate:
    """By a function that rises or falls throughout."""
    assert estimate.value is not None
    ends = [to(v) for v in estimate.interval or ()]
    interval = (min(ends), max(ends)) if ends else None
    return Estimate(to(estimate.value), interval, estimate.n)


def _sure(estimate: Estimate, neutral: float, digits: int, unit: str = "") -> str:
    """The interval, and whether the difference may be none."""
    if estimate.interval is None:
        return " (too few, or all alike, for an interval)"
    low, high = estimate.interval
    doubt = ", not a sure difference" if low <= neutral <= high else ""
    return f" ({low:z.{digits}f} to {high:z.{digits}f}{unit}{doubt})"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
