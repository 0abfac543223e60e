"""Notebooks run from top to bottom."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
for library in ("jinja2", "plotly"):
    pytest.importorskip(library, reason=f"{library} is not installed (extra `report`)")

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.slow
def test_the_campaign_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOKS / "campaign.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("image/png" in o.get("data", {}) for o in outputs)
    assert (next(tmp_path.glob("*/campaign/report")) / "report.html").stat().st_size > 1e6


def test_notebooks_are_kept_without_outputs() -> None:
    paths = list(NOTEBOOKS.glob("*.ipynb"))
    assert paths
    for path in paths:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs"), path
            assert cell.get("execution_count") is None, path
