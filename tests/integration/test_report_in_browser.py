"""The report as a reader sees it: opened in Chromium, off the network, on a phone and on a desk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlnav.campaign import run
from mlnav.campaign.definition import parse_definition
from mlnav.report.report import compare_reports, write_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
for library in ("jinja2", "plotly"):
    pytest.importorskip(library, reason=f"{library} is not installed (extra `report`)")

CHROMIUM = os.environ.get("MLNAV_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on the path (apt-get install chromium)"
    ),
]

PATIENCE_MS = 120_000
"""Of a machine that has other things to do."""

PHONE, DESK = (360, 780), (1440, 900)

SPEC = """
name: shown
description: A small campaign, to be looked at.
trials: 2
grid: {slope_deg: [0, 15], cfa: [0.05, 0.12]}
contenders:
  - none
  - sobel
  - {name: starved, traverse.ace_budget: 30}
config: {checker: fixed_box, limits: enav_like}
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of a campaign with failures, of the same beside itself, and of one without trials."""
    folder = tmp_path_factory.mktemp("campaign")
    store = run(parse_definition(SPEC), folder / "c", workers=2)
    report = write_report(store.folder, folder / "report", pictures=2)["report.html"]
    compared = compare_reports(store.folder, store.folder, folder / "compared")["compare.html"]
    for part in (folder / "c" / "parts").iterdir():
        part.unlink()
    empty = write_report(store.folder, folder / "empty")["report.html"]
    return {"report": report, "compared": compared, "empty": empty}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visit:
    """A page that is open, what went wrong in it, and what it asked the network for."""

    def __init__(self, context: Any, path: Path) -> None:
        self.folder = path.parent
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page = context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda fault: self.wrong.append(str(fault)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function(
            "[...document.querySelectorAll('.chart')].every(d => d.querySelector('svg'))"
        )

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)


@pytest.fixture(scope="module", params=[PHONE, DESK], ids=["phone", "desk"])
def visits(
    request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]
) -> Iterator[dict[str, Visit]]:
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE_MS)
    yield {name: Visit(context, path) for name, path in pages.items()}
    context.close()


def fits(page: Any) -> bool:
    """Whether nothing sticks out to the side; tables scroll in boxes of their own."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("name", ["report", "compared", "empty"])
def test_pages_open_without_a_fault(name: str, visits: dict[str, Visit]) -> None:
    visit, page = visits[name], visits[name].page
    assert visit.wrong == []
    assert [url for url in visit.asked if not url.startswith(("file:", "data:"))] == []
    assert fits(page)
    targets = page.eval_on_selector_all("a[href^='#']", "links => links.map(a => a.hash)")
    assert targets
    for target in targets:
        assert page.locator(target).count() == 1, target
    others = page.eval_on_selector_all(
        "a[href]:not([href^='#'])", "links => links.map(a => a.getAttribute('href'))"
    )
    assert all((visit.folder / link).exists() for link in others)
    size = page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 15


def test_charts_are_drawn(visits: dict[str, Visit]) -> None:
    page = visits["report"].page
    charts = page.locator(".chart")
    names = [charts.nth(i).get_attribute("id") for i in range(charts.count())]
    assert names[:4] == ["chart-unsafe", "chart-success", "chart-ratio", "chart-detour"]
    assert {"chart-ratio-map-0", "chart-effort", "chart-reliability", "chart-time"} <= set(names)
    width = page.viewport_size["width"]
    for i in range(charts.count()):
        box = charts.nth(i).bounding_box()
        assert 200 < box["width"] <= width
        marks = charts.nth(i).locator("svg .trace, svg .hm, svg .bars").count()
        assert marks > 0, names[i]
    # Nothing that is written in a chart lies outside it.
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.chart')].flatMap(div => {
          const box = div.getBoundingClientRect();
          return [...div.querySelectorAll('.main-svg text')].filter(t => {
            const b = t.getBoundingClientRect();
            return b.width > 0 && (b.left < box.left - 1 || b.right > box.right + 1);
          }).map(t => div.id + ': ' + t.textContent);
        })"""
    )
    assert cut == []


def test_pictures_of_failures_are_there(visits: dict[str, Visit]) -> None:
    page = visits["report"].page
    pictures = page.locator(".still img")
    assert pictures.count() >= 1
    for i in range(pictures.count()):
        assert pictures.nth(i).evaluate("img => img.complete && img.naturalWidth > 1000")
        assert pictures.nth(i).get_attribute("alt")


def test_numbers_can_be_read_without_a_mouse(visits: dict[str, Visit]) -> None:
    """Boxes that scroll can be reached by keyboard and have names."""
    page = visits["report"].page
    boxes = page.locator(".scroll")
    for i in range(boxes.count()):
        box = boxes.nth(i)
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label")
    for table in page.locator("table").all():
        assert table.locator("thead th[scope=col]").count() > 1


def test_effort_is_shown_by_ground(visits: dict[str, Visit]) -> None:
    page = visits["report"].page
    chart = page.locator("#chart-effort")
    chart.scroll_into_view_if_needed()
    chart.locator(".updatemenu-header").click()
    items = chart.locator(".updatemenu-dropdown-button")
    assert items.count() == 5
    items.nth(3).click()
    shown = page.evaluate(
        "document.getElementById('chart-effort').data.map(t => t.visible).filter(v => v).length"
    )
    assert shown == 3


def test_it_can_be_read_in_the_dark(visits: dict[str, Visit]) -> None:
    page = visits["report"].page
    page.emulate_media(color_scheme="dark")
    colours = page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    page.emulate_media(color_scheme="light")
    ink, paper = (sum(int(v) for v in c[4:-1].split(",")) for c in colours)
    assert ink - paper > 450


def test_looking_at_all_that_did_no_harm(visits: dict[str, Visit]) -> None:
    assert [visit.wrong for visit in visits.values()] == [[]] * len(visits)
