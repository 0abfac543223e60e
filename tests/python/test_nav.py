"""Navigation on heightmaps of one's own: no simulation, no terrains."""

import subprocess
import sys

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.nav import MapError, Motion, Navigator, Plan, with_candidates, zone_mask
from mlnav.terrain import Terrain

ALONE = """
import sys
import numpy as np
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.nav import Navigator

rng = np.random.default_rng(1)
z = rng.normal(0.0, 0.01, (200, 200)).astype(np.float32)
z[95:105, 115:120] = 0.5
zone = [(15.0, 5.0), (16.0, 5.0), (16.0, 9.0), (15.0, 9.0)]
for changes in ({}, {"heuristic": "sobel", "keep_out": [zone]}, {"heuristic": "oracle"}):
    navigator = Navigator(Config().replaced(**changes), z.size)
    pose, steered = (6.0, 10.0, 0.0), 0.0
    for _ in range(4):
        cycle = navigator.cycle(HeightMap(z, 0.1, (0.05, 0.05)), pose, (17.0, 10.0), steered)
        assert cycle.result.outcome == "path", cycle.result.outcome
        assert (cycle.local_map.keep_out is None) == ("keep_out" not in changes)
        pose = cycle.result.commit_end
        turned = cycle.result.turn_rad and not cycle.result.length_m
        steered = float("inf") if turned else cycle.result.curvature_per_m
    assert pose[0] > 8.0
    assert navigator.as_built()["planner.commit_length_m"] == 1.0
loaded = [m for m in sys.modules if m.startswith(("mlnav.sim", "mlnav.terrain", "mlnav.campaign"))]
print(loaded)
"""


def test_a_rover_needs_no_simulation_and_no_terrains() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def flat() -> HeightMap:
    return HeightMap(np.zeros((160, 160)), 0.1, (0.05, 0.05))


def test_zones_of_the_configuration_hold_on_maps_without_a_mask() -> None:
    zone = [(9.5, 6.0), (10.5, 6.0), (10.5, 10.0), (9.5, 10.0)]
    pose, goal = (6.0, 8.0, 0.0), (14.0, 8.0)
    free = Navigator(Config(), 160 * 160).cycle(flat(), pose, goal)
    assert free.local_map.keep_out is None
    navigator = Navigator(Config().replaced(keep_out=[zone]), 160 * 160)
    held = navigator.cycle(flat(), pose, goal)
    np.testing.assert_array_equal(held.local_map.keep_out, zone_mask(flat(), [zone], []))
    for cycle, through in ((free, True), (held, False)):
        x, y, _ = np.array(cycle.result.path).T
        assert ((x > 9.5) & (x < 10.5) & (y > 6.0) & (y < 10.0)).any() == through
    own = np.zeros((160, 160), np.uint8)
    own[0, 0] = 1
    kept = navigator.cycle(HeightMap(flat().z, 0.1, (0.05, 0.05), own), pose, goal)
    np.testing.assert_array_equal(kept.local_map.keep_out, own)


def test_zones_are_the_same_on_a_map_and_a_terrain() -> None:
    zones = [[(3.0, 3.0), (7.0, 3.5), (5.0, 9.0)]], [[(1.0, 1.0), (15.0, 1.0), (8.0, 15.0)]]
    local = flat()
    terrain = Terrain(local.z, local.resolution_m, local.origin_m)
    np.testing.assert_array_equal(zone_mask(local, *zones), zone_mask(terrain, *zones))


def test_coarse_maps_are_refused_unless_the_configuration_insists() -> None:
    coarse = HeightMap(np.zeros((60, 60)), 0.4, (0.2, 0.2))
    pose, goal = (12.0, 12.0, 0.0), (20.0, 12.0)
    with pytest.raises(MapError, match=r"the local map has cells of 0\.4 m"):
        Navigator(Config(), 3600).cycle(coarse, pose, goal)
    insists = Config().replaced(["traverse.allow_coarse_cells=true"])
    assert Navigator(insists, 3600).cycle(coarse, pose, goal).result.outcome == "path"


def test_enav_shows_its_candidates_and_others_need_not() -> None:
    navigator = Navigator(Config(), 160 * 160)
    navigator.cycle(flat(), (6.0, 8.0, 0.0), (14.0, 8.0))
    planner = with_candidates(navigator.planner)
    assert planner is not None
    assert len(planner.path_costs()) == len(planner.path_verdicts()) == 1694
    assert planner.path_poses(0).shape[1] == 3
    navigator.planner.reset()

    class Own:
        def plan(self, request):
            return Plan("no_safe_path")

    assert with_candidates(Own()) is None


def test_a_plan_of_ones_own_has_what_the_core_tells() -> None:
    """The loop, records and pictures read either."""
    navigator = Navigator(Config(), 160 * 160)
    result = navigator.cycle(flat(), (6.0, 8.0, 0.0), (14.0, 8.0)).result
    told = {name for name in dir(result) if not name.startswith("_")}
    assert told <= {name for name in dir(Plan("path")) if name[0] != "_"}


def test_a_motion_ends_where_the_core_says() -> None:
    navigator = Navigator(Config(), 160 * 160)
    pose = (6.0, 8.0, 0.4)
    result = navigator.cycle(flat(), pose, (14.0, 9.0)).result
    motion = Motion(result.turn_rad, result.curvature_per_m, result.length_m)
    end = motion.poses(pose, 0.1, 0.05)[0][-1]
    assert end == pytest.approx(result.commit_end, abs=1e-9)
