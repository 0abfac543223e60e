"""Maps whose cells are too coarse to drive on."""

import math

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.nav import fine_enough
from mlnav.sim import default_endpoints, one_cycle, screen, traverse
from mlnav.sim.cells import check_cells
from mlnav.sim.explain import explain
from mlnav.sim.standing import standing
from mlnav.terrain import Terrain, TerrainError

START, GOAL = (6.0, 10.0), (11.0, 10.0)
INSISTING = Config().replaced(["traverse.allow_coarse_cells=true"])


def level(resolution_m: float) -> Terrain:
    n = round(20.0 / resolution_m)
    return Terrain(np.zeros((n, n)), resolution_m, name="level")


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda t, c: traverse(t, c, START, GOAL), id="traverse"),
        pytest.param(lambda t, c: one_cycle(t, c, START, GOAL), id="one_cycle"),
        pytest.param(default_endpoints, id="default_endpoints"),
        pytest.param(screen, id="screen"),
        pytest.param(lambda t, c: standing(t, c, 1), id="standing"),
        pytest.param(lambda t, c: explain(t, c, (*START, 0.0)), id="explain"),
    ],
)
def test_coarse_cells_are_refused_unless_one_insists(use) -> None:
    for resolution_m in (0.25, 0.5, 1.0):
        with pytest.raises(
            TerrainError, match=rf"'level' has cells of {resolution_m:g} m.*--allow"
        ):
            use(level(resolution_m), Config())
    use(level(0.5), INSISTING)


def test_two_tenths_of_a_metre_are_fine_enough() -> None:
    for fine_m in (0.02, 0.1, 0.1946, 0.2, 0.656 * 0.3048, 205 / 1024):
        assert fine_enough(fine_m)
        check_cells(level(fine_m), Config())
    for coarse_m in (0.201, 0.25, math.inf):
        assert not fine_enough(coarse_m)


def test_a_sensor_may_not_map_coarsely_either() -> None:
    config = Config().replaced(["sensor.resolution_m=0.4"], sensor="stereo")
    with pytest.raises(TerrainError, match=r"map of sensor 'stereo' has cells of 0\.4 m"):
        traverse(level(0.1), config, START, GOAL)
