"""Pictures of trials, driven again, which gives the same run: failures, a drive in its bounds."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlnav.campaign.analysis import Failure
from mlnav.campaign.replay import find, replay
from mlnav.campaign.store import Store
from mlnav.compute import Limits, run_tasks
from mlnav.trials.records import NO_RUN, Row
from mlnav.viz.style import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110
_QUALITY = 88
_ALL_S = 180.0
"""Time for all pictures of failures."""


@dataclass(frozen=True)
class Still:
    """A failure, and its picture."""

    failure: Failure
    like_it: int
    """Failures of this contender that ended the same way, this one among them."""
    jpeg: bytes | None = None
    note: str | None = None
    """Why there is no picture, or why it is of another run."""


def chosen(failures: Sequence[Failure], most: int) -> list[Still]:
    """Failures worth a picture: the first of each ending of each contender, most frequent first."""
    shown = [f for f in failures if f.outcome not in NO_RUN]
    counts = Counter((f.contender, f.outcome) for f in shown)
    first = {(f.contender, f.outcome): f for f in reversed(shown)}
    return [Still(first[kind], n) for kind, n in counts.most_common(most)]


def stills(
    folder: Path, failures: Sequence[Failure], most: int = 6, trial_s: float = 60.0
) -> list[Still]:
    """Pictures of at most `most` of a campaign's failures, each within `trial_s` [s]."""
    kinds = {still.failure.key: still for still in chosen(failures, most)}
    drawn: dict[str, Still] = {}
    begin = time.monotonic()
    tasks = [(folder, key) for key in kinds]
    for ended in run_tasks(tasks, _draw, limits=Limits(wall_s=trial_s, attempts=1)):
        _, key = ended.task
        failure, like_it = kinds[key].failure, kinds[key].like_it
        if ended.value is not None:
            drawn[key] = Still(failure, like_it, *ended.value)
        else:
            why = ended.error or ended.loss
            drawn[key] = Still(failure, like_it, note=f"It could not be driven again: {why}.")
        if time.monotonic() - begin > _ALL_S:
            break
    late = f"Not drawn: the {_ALL_S:g} s for pictures were over."
    return [drawn.get(key, Still(s.failure, s.like_it, note=late)) for key, s in kinds.items()]


def drive_in_bounds(store: Store, trial_s: float = 60.0) -> tuple[Row, bytes] | None:
    """The last contender's first success, its settled states against the checker's bounds.

    None where the rover did not see and follow its way exactly, or there is no success in time.
    """
    name = store.definition.names[-1]
    config = store.definition.configs[name]
    exact = (config.world.name, config.sensor.name, config.localization.name)
    rows = store.rows(("key", "terrain", "trial", "contender", "success"))
    row = next((r for r in rows if r["contender"] == name and r["success"]), None)
    if row is None or exact != ("kinematic", "truth", "truth"):
        return None
    tasks = [(store.folder, row["key"])]
    (ended,) = run_tasks(tasks, _draw_bounds, limits=Limits(wall_s=trial_s, attempts=1))
    return None if ended.value is None else (row, ended.value)


def _draw_bounds(task: tuple[Path, str]) -> bytes | None:
    from mlnav.sim.explain import explain_drive
    from mlnav.viz import way_figure

    folder, key = task
    again = replay(find(key, folder))
    if again.scenario is None or again.result is None:
        return None
    terrain, config = again.scenario.terrain, again.record.trial.config
    return _jpeg([way_figure(terrain, explain_drive(terrain, config, again.result.cycles), config)])


def _draw(task: tuple[Path, str]) -> tuple[bytes | None, str | None]:
    from mlnav.viz import traverse_figure, unsafe_figure

    folder, key = task
    record = find(key, folder)
    again = replay(record)
    if again.scenario is None or again.result is None:
        return None, f"It could not be driven again: {again.outcome.trial['error']}."
    what = again.scenario.terrain, again.result, record.trial.config
    figures = [traverse_figure(*what)]
    if again.result.unsafe is not None:
        figures.append(unsafe_figure(*what))
    other = ", ".join(name.replace("_", " ") for name in again.made_with)
    note = f"Another run than was recorded: the {other or 'machine'} is another."
    return _jpeg(figures), note if again.differences else None


def _jpeg(figures: Sequence[Figure]) -> bytes:
    """Figures below each other, as wide as the first."""
    from PIL import Image

    images = []
    width_in = float(figures[0].get_size_inches()[0])
    for figure in figures:
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=_DPI * width_in / float(figure.get_size_inches()[0]))
        images.append(Image.open(drawn).convert("RGB"))
    whole = Image.new("RGB", (images[0].width, sum(i.height for i in images)), PAPER)
    top = 0
    for image in images:
        whole.paste(image, (0, top))
        top += image.height
    picture = io.BytesIO()
    whole.save(picture, "JPEG", quality=_QUALITY, optimize=True)
    return picture.getvalue()
