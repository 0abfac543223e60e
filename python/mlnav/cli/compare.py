"""`mlnav compare`: a campaign defined on the command line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from mlnav.cli import common, options
from mlnav.cli.campaign import KeepOldOption, watched
from mlnav.cli.common import RefusedError, output
from mlnav.config import Config

if TYPE_CHECKING:
    from mlnav.campaign import Definition, Store
    from mlnav.campaign.analysis import Analysis

COMPARED = ("planner", "heuristic", "sensor")
"""Parts of the configuration in which contenders differ."""


@options.with_options
def compare_command(
    *,
    more: Annotated[
        list[str] | None, Argument(metavar="[TERRAIN]...", help="Further ones.")
    ] = None,
    terrain: Annotated[
        list[str] | None,
        Option("--terrain", "-t", metavar="FILE|RECIPE|CLASS", help="One or several, or repeat."),
    ] = None,
    reading: options.Reading,
    planners: Annotated[str | None, Option(metavar="A,B,...")] = None,
    heuristics: Annotated[
        str,
        Option(
            metavar="C,D,...",
            help="Names; settings of one may follow it after a colon:"
            " none,sobel:weight_per_m=20;to_go_fraction=0",
        ),
    ] = "none,sobel",
    sensors: Annotated[str | None, Option(metavar="E,F,...", help="truth, stereo")] = None,
    base: Annotated[Config, options.configuration("checker limits world allow_coarse")],
    pairs: Annotated[int, Option(min=1, help="Start-goal pairs on each terrain.")] = 10,
    seed: options.RunSeed = 0,
    rocks: Annotated[
        str | None,
        Option(metavar="CFA,...", help="Add rocks of these covers to each GeoTIFF; 0: none."),
    ] = None,
    size: Annotated[
        float | None,
        Option(min=2.0, metavar="M", help="Draw pairs in a GeoTIFF's middle square of this side."),
    ] = None,
    budget: Annotated[
        int | None, Option("--ace-budget", min=1, help="ACE evaluations per cycle.")
    ] = None,
    same_state: Annotated[
        int,
        Option(
            min=0,
            metavar="K",
            help="Also plan one cycle of every contender from K states per terrain of the first.",
        ),
    ] = 0,
    workers: options.Workers = 1,
    keep_old: KeepOldOption = False,
    out: options.Out = Path("out/compare"),
    pictures: Annotated[bool, Option(help="Draw compare.png and states/*.png.")] = True,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Drive the same pairs with every contender, planner x heuristic x sensor, and compare.

    This is a campaign (`mlnav campaign`), defined by these options instead of a file: the same
    seeds, records, statistics and report. Classes and recipes: each pair is a new terrain with its
    own start and goal. GeoTIFFs: pairs are drawn; both ends are safe when settled, at least 20 m
    (or 60 % of the usable extent) apart, and connected: a flood fill over a 0.5 m lattice of points
    where the settled rover is within limits at any of 8 headings. With rocks, all this holds on the
    rocky terrain; 2.5 m about start and goal are kept clear.

    The first contender is the baseline: "times fewer" is its ACE evaluations per cycle over those
    of another, over pairs where both arrive, with a paired bootstrap interval.

    DIR is the campaign's folder. A further call with the same or other terrains, contenders and
    pairs continues it (--force starts anew). It gets report/, as of `mlnav campaign report`;
    compare.png; states/*.png, the most expensive cycle of the first contender on each terrain, as
    every contender plans it; and same_states.json with --same-state.

    **Examples**

    - mlnav compare --terrain 10/.07 15/.10 --heuristics none,sobel --pairs 20 --workers 2
    - mlnav compare -t map.tif --rocks 0,0.05,0.10 --size 32 --heuristics none,network --pairs 20
    - mlnav compare -t 15/.10 --heuristics "none,sobel:weight_per_m=20" --same-state 40 --json
    """
    specs: list[str] = []
    for text in (*(terrain or ()), *(more or ())):  # commas separate, but in the name of a file
        specs += [text] if Path(text).exists() else filter(None, text.split(","))
    if not specs:
        raise RefusedError("--terrain: a GeoTIFF, recipe or class is needed")
    if budget is not None:
        base = base.replaced([f"traverse.ace_budget={budget}"])
    named = (planners or base.planner.name, heuristics, sensors or base.sensor.name)
    names = {part: text.split(",") for part, text in zip(COMPARED, named, strict=True)}
    contenders = contenders_of(base, **names)
    if len(contenders) < 2:
        raise RefusedError("a comparison needs two contenders: name more planners or heuristics")
    definition = definition_of(
        base, contenders, specs, name="compare", trials=pairs, seed=seed, how=reading,
        covers=common.numbers("--rocks", rocks) or (0.0,), size_m=size,
    )  # fmt: skip
    store = driven(definition, out, workers, force, keep_old)
    _report(store, out, same_state, workers, pictures, as_json)


@options.with_options
def traverses_command(
    *,
    classes: Annotated[str | None, Option(metavar="S/CFA,...", help="Or any terrains.")] = None,
    seeds: Annotated[int, Option(min=1, help="Runs per class.")] = 20,
    seed: options.RunSeed = 0,
    setup: Annotated[Config, options.configuration("planner checker limits heuristic")],
    workers: options.Workers = 1,
    keep_old: KeepOldOption = False,
    out: options.Out = Path("out/bench-traverses"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Drive many traverses of one configuration and print a table by class.

    A campaign of one contender: the same seed and class give the same terrain under every
    configuration, and the next run continues DIR (--force starts anew).

    **Examples**

    - mlnav bench traverses --classes 10/.07,15/.10 --seeds 20 --workers 2
    - mlnav bench traverses --heuristic sobel --json
    """
    contenders = contenders_of(setup, **{part: [getattr(setup, part).name] for part in COMPARED})
    specs = classes.split(",") if classes else list(CLASSES)
    definition = definition_of(setup, contenders, specs, name="traverses", trials=seeds, seed=seed)
    store = driven(definition, out, workers, force, keep_old)
    _report(store, out, 0, workers, False, as_json)


CLASSES = ("10/.07", "15/.07", "0/.15", "10/.12", "0/.20", "15/.10", "20/.05")
"""Slope (deg) / rock abundance, from easy to hard."""


def contenders_of(base: Config, **names: Sequence[str]) -> list[dict[str, Any]]:
    """Every combination of planners, heuristics and sensors, as a definition lists contenders.

    Settings may follow a name, `sobel:weight_per_m=20;to_go_fraction=0`. A part that the base has
    keeps its settings; others have their defaults.

    Raises:
        ConfigError: an unknown name or setting.
    """
    differ = [part for part in COMPARED if len(names[part]) > 1]
    found = []
    for chosen in itertools.product(*(names[part] for part in COMPARED)):
        config = base
        named = dict(zip(COMPARED, chosen, strict=True))
        for part, text in named.items():
            config = _with(config, part, text)
        label = "+".join(named[part] for part in differ or COMPARED[1:2])
        parts = config.model_dump(mode="json", include=set(COMPARED))
        # `sobel:weight_per_m=20` as `sobel-weight_per_m-20`
        found.append({"name": re.sub(r"[^A-Za-z0-9_.+-]", "-", label), **parts})
    return found


def _with(config: Config, part: str, text: str) -> Config:
    name, _, settings = text.rpartition(":") if "=" in text else (text, "", "")
    if not name:
        raise RefusedError(f"{part}: an empty name in the list")
    if getattr(config, part).name != name:
        config = config.replaced(**{part: name})
    return config.replaced([f"{part}.{s}" for s in settings.split(";") if s])


def definition_of(
    base: Config,
    contenders: Sequence[dict[str, Any]],
    terrains: Sequence[str],
    *,
    name: str,
    trials: int,
    seed: int,
    how: Any = None,
    covers: Sequence[float] = (0.0,),
    size_m: float | None = None,
) -> Definition:
    """The campaign that options define.

    Raises:
        CampaignError: it is not a valid one.
        RefusedError: rocks, a size or a reading, and no GeoTIFF.
    """
    from mlnav.campaign.definition import checked_definition, terrain_data
    from mlnav.terrain import AS_DECLARED
    from mlnav.trials.scenarios import is_geotiff

    how = how or AS_DECLARED
    maps = any(map(is_geotiff, terrains))
    of_maps = {
        "rocks are added to GeoTIFFs": tuple(covers) != (0.0,),
        "a size is of the square in a GeoTIFF to drive in": size_m is not None,
        "band, nodata and vertical unit are of GeoTIFFs": how != AS_DECLARED,
    }
    for text, given in of_maps.items():
        if given and not maps:
            raise RefusedError(f"{text}, and none is given")
    listed = [
        terrain_data(terrain, how, cfa=cover, size_m=size_m)
        for terrain in terrains
        for cover in (covers if is_geotiff(terrain) else (0.0,))
    ]
    # Parts that contenders may differ in are theirs, whatever the number of contenders.
    shared = base.model_dump(mode="json", exclude=set(COMPARED))
    made = {"name": name, "seed": seed, "trials": trials, "terrains": listed, "config": shared}
    return checked_definition(made | {"contenders": list(contenders)})


def driven(definition: Definition, out: Path, workers: int, force: bool, keep_old: bool) -> Store:
    """Run a campaign in a folder, or continue the one there."""
    from mlnav.campaign import run
    from mlnav.campaign.definition import check_available
    from mlnav.campaign.store import remove

    check_available(definition)
    common.claim(out, (), force)
    if force:
        remove(out)
    with watched(f"the same command goes on with what is in {out}") as progress:
        return run(
            definition, out, extend=True, keep_old=keep_old, workers=workers, progress=progress
        )


def _report(
    store: Store, out: Path, states: int, workers: int, pictures: bool, as_json: bool
) -> None:
    from mlnav.io import write_json
    from mlnav.report.report import MissingLibraryError, analysis_of, write_report

    for earlier in (out / "compare.png", out / "same_states.json", *out.glob("states/*.png")):
        earlier.unlink(missing_ok=True)
    try:
        page = str(write_report(out, pictures=int(pictures))["report.html"])
    except MissingLibraryError as fault:
        page = f"none, {fault}"
    analysis = analysis_of(store)
    same: dict[str, Any] | None = None
    if states:
        from mlnav.studies.same_states import same_states

        total = len(store.definition.labels) * len(store.definition.names)
        with common.progress_bar("states", total * store.definition.trials) as update:
            same = same_states(store, states, workers, update)
        write_json(out / "same_states.json", same)
    if pictures:
        _draw(store, analysis, out)
    if as_json:
        found = {} if same is None else {"same_states": same["contenders"]}
        common.emit({**analysis.as_dict(), **found, "out": str(out)})
    else:
        print_analysis(analysis)
        if same is not None:
            _print_same_states(same["contenders"])
        output.print(f"report: {page}", soft_wrap=True, markup=False)


def _draw(store: Store, analysis: Analysis, out: Path) -> None:
    from mlnav import viz
    from mlnav.campaign.analysis import by_slot
    from mlnav.report.picture import compare_figure
    from mlnav.studies.same_states import trial_of, worst_state
    from mlnav.trials.runs import runs_of
    from mlnav.viz.states import state_figure, view

    slots = by_slot(runs_of(store.trials(), store.cycles()))
    viz.save_figure(compare_figure(analysis, slots), out / "compare.png")
    names, configs = store.definition.names, store.definition.configs
    for label in store.definition.labels:
        state = worst_state(store, label)
        if state is None:
            continue
        scenario = trial_of(store, label, state.trial, names[0]).scenario()
        views = [
            view(n, scenario.terrain, configs[n], state.pose, scenario.goal, state.steered_per_m)
            for n in names
        ]
        title = f"{label}: where {names[0]} spent most"
        note = (
            f"trial {state.trial}, cycle {state.cycle + 1} of {names[0]}, {state.evaluations} ACE"
            " evaluations there; here everyone plans without memory of earlier cycles"
        )
        figure = state_figure(scenario.terrain, views, state.pose, scenario.goal, title, note)
        viz.save_figure(figure, out / "states" / f"{common.file_name(label)}.png")


def print_analysis(analysis: Analysis) -> None:
    """Print the tables of a campaign, and warnings about its contenders."""
    from mlnav.report import tables

    for table in tables.for_screen(analysis):
        common.print_table(table)
    for text in analysis.assumptions:
        output.print(f"modelled flight time {text}", markup=False)
    for e in analysis.entrants:
        if e.out_of_work is not None:
            output.print(f"[bold red]{e.name}[/]: {escape(e.out_of_work)}", soft_wrap=True)
        for event in e.events:
            output.print(f"[bold]{e.name}[/]: {escape(event)}", soft_wrap=True)


def _print_same_states(contenders: dict[str, Any]) -> None:
    from mlnav.stats import Estimate

    ratios = []
    for name, c in contenders.items():
        ratio = Estimate(c["ratio"]["value"], c["ratio"]["ci95"], c["ratio"]["n"])
        ratios.append(f"{name} {ratio.text()} of {c['states']}")
    output.print(f"times fewer from the same states, without memory: {', '.join(ratios)}")
