"""The real maps read with the numbers their catalogue gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlnav.terrain import load, read_geotiff

FOLDER = Path(
    os.environ.get(
        "MLNAV_REAL_TERRAINS", Path(__file__).parents[2] / ".." / "shared" / "terrains_real"
    )
)
CATALOGUE: dict[str, dict[str, Any]] = (
    json.loads((FOLDER / "terrains.json").read_text())
    if (FOLDER / "terrains.json").exists()
    else {}
)

pytestmark = pytest.mark.skipif(
    not CATALOGUE, reason=f"no real terrains in {FOLDER} (set MLNAV_REAL_TERRAINS)"
)


@pytest.mark.parametrize("name", CATALOGUE)
def test_real_map_has_the_catalogued_numbers(name: str) -> None:
    entry = CATALOGUE[name]
    terrain = read_geotiff(FOLDER / entry["file"])
    assert terrain.name == name
    assert terrain.shape == (entry["height"], entry["width"])
    assert terrain.resolution_m == pytest.approx(entry["pixel_m"])
    bounds = (entry["x_min"], entry["x_max"], entry["y_min"], entry["y_max"])
    assert terrain.extent_m == pytest.approx(bounds, abs=1e-3)
    assert np.nanmin(terrain.z) == pytest.approx(entry["z_min"], abs=6e-3)
    assert np.nanmax(terrain.z) == pytest.approx(entry["z_max"], abs=6e-3)
    assert np.isfinite(terrain.z).mean() == pytest.approx(entry["valid_fraction"], abs=1e-4)
    assert terrain.datum == (0.0, 0.0, 0.0)
    assert ["elevation_m", *terrain.layers] == entry["bands"]
    assert terrain.attribution
    assert load(FOLDER / entry["file"]).sha256 == terrain.sha256


@pytest.mark.parametrize("name", [n for n in CATALOGUE if "core_x" in CATALOGUE[n]])
def test_core_of_a_curiosity_map(name: str) -> None:
    entry = CATALOGUE[name]
    whole = read_geotiff(FOLDER / entry["file"])
    core = whole.crop(*entry["core_x"], *entry["core_y"])
    assert core.shape == (320, 320)
    assert core.extent_m == pytest.approx((-16, 16, -16, 16))
    assert np.nanmin(core.z) == pytest.approx(entry["core_stats"]["zmin"], abs=6e-3)
    assert np.nanmax(core.z) == pytest.approx(entry["core_stats"]["zmax"], abs=6e-3)
    assert core.height(3.21, -4.56) == pytest.approx(whole.height(3.21, -4.56), abs=1e-6)

    # Band 2 tells the core, meshed at about 0.2 m, from the coarse ground around it.
    fine = whole.layers["source_mesh_spacing_m"] <= 0.3
    inside = np.zeros(whole.shape, bool)
    inside[480:800, 480:800] = True
    assert fine[inside].mean() > 0.95
    assert fine[~inside].mean() < 0.02
