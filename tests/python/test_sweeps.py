"""The study of sweeps: what it counts, and that an unsound checker shows."""

import json
import math

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.nav import Motion
from mlnav.studies.sweeps import SweepsRequest, sweeps

CARELESS = """
import numpy as np
from mlnav.config import Checker


class Careless:
    class Settings(Checker):
        pass

    def __init__(self, settings, model, max_map_cells):
        pass

    def set_map(self, grid):
        pass

    def reasons(self, poses):
        return np.zeros(len(poses), np.uint16)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_the_certified_checker_keeps_its_word_on_the_way(workers: int) -> None:
    noted: list[tuple[int, str]] = []
    request = SweepsRequest(Config(), "10/.10", motions=70, seed=5, workers=workers)
    report = sweeps(request, lambda done, note: noted.append((done, note)))
    assert noted[-1] == (70, "10/.10")
    assert report["states"]["states"] > 1000
    assert report["states"]["unsafe"] == report["states"]["outside"] == 0
    assert sum(report["motions"][kind]["tried"] for kind in ("arc", "turn", "resteer")) == 70
    for kind in report["motions"].values():
        assert kind["passed"]["hits"] > 0.7 * kind["passed"]["trials"] > 0
        assert kind["unsafe_passed"] == 0
    assert report["certified_km"] > 0.005
    assert report["boxes_per_sweep"] > 1 and report["us_per_m"]["sweeps"] > 0
    assert report["by_terrain"].keys() == {"10/.10"}
    json.dumps(report)


def test_a_checker_that_passes_anything_is_found_out(tmp_path) -> None:
    part = tmp_path / "careless.py"
    part.write_text(CARELESS)
    config = Config().replaced(checker=f"{part}:Careless")
    suspects: list[dict] = []
    report = sweeps(SweepsRequest(config, "15/.15", motions=20, seed=1), suspect=suspects.append)
    assert report["states"]["unsafe"] > 100
    assert suspects and suspects[0]["found"]["unsafe"] + suspects[0]["found"]["outside"] > 0
    assert len(suspects[0]["sweep"]) == 6


def test_rows_of_a_motion_lead_from_pose_to_pose() -> None:
    start = (2.0, 3.0, 0.4)
    rows = Motion(0.5, -0.2, 1.1).sweeps(start, 0.1)
    steer, turn, again, arc = rows[:1], rows[1:4], rows[4:5], rows[5:]
    assert steer[0].tolist() == [*start, math.inf, 0.0, 0.1]
    assert turn[:, 4].sum() == pytest.approx(0.5) and np.isinf(turn[:, 3]).all()
    assert again[0, 3] == -0.2 and math.isinf(again[0, 5])
    assert arc[:, 4].sum() == pytest.approx(1.1) and len(arc) == 5
    ends, _ = Motion(0.5, -0.2, 1.1).poses(start, 0.25, math.radians(10))
    assert np.allclose(rows[-1, :3], ends[-2])
    assert not len(Motion(0.0, 0.0, 0.0).sweeps(start))
    # The wheels stand as the motion wants them.
    assert len(Motion(0.0, 0.1, 0.5).sweeps(start, 0.1)) == 2


def test_rows_reach_the_core_as_sweeps() -> None:
    z = np.tile(0.1 * np.sin(np.arange(300) * 0.1), (300, 1)).astype(np.float32)
    checker = Config().build_checker(z.size)
    checker.set_map(HeightMap(z, 0.1, (0.0, 0.0)).grid)
    row = np.array([[15.0, 15.0, 0.3, 0.1, 0.5, math.nan]])
    whole, pose = checker.report(row), checker.report(np.ascontiguousarray(row[:, :4]))
    assert whole["ranges"][0] > 0 and pose["ranges"][0] == 0
    assert checker.reasons(row)[0] == whole["reasons"][0]
    assert whole["safe"][0] and pose["safe"][0]
    for name in ("roll_rad", "pitch_rad"):
        low, high = whole[name][0]
        assert low <= pose[name][0].mean() <= high
    still = np.array([[15.0, 15.0, 0.3, 0.1, 0.0, math.inf]])
    assert checker.report(still)["ranges"][0] > 0
    with pytest.raises(_core.CoreError, match="standstill"):
        checker.reasons(np.array([[15.0, 15.0, 0.3, 0.1, 0.5, 0.2]]))
    with pytest.raises(_core.CoreError, match="sweeps must have shape"):
        checker.reasons(np.zeros((1, 7)))
