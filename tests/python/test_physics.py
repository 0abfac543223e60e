"""The bench that holds what is computed against physics."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("pybullet", reason="needs pybullet (extra sim)")

from mlnav.cli import app
from mlnav.config import Config
from mlnav.linkage import STATE
from mlnav.sim import KinematicWorld
from mlnav.sim.world import Motion
from mlnav.studies import physics
from mlnav.terrain import Terrain

pytestmark = pytest.mark.bullet

GEOMETRY = Config().rover.to_core()


def slope(deg: float, aspect_rad: float) -> Terrain:
    y, x = np.mgrid[0:160, 0:160] * 0.1
    up = math.tan(math.radians(deg)) * (x * math.cos(aspect_rad) + y * math.sin(aspect_rad))
    return Terrain(up.astype(np.float32), 0.1, (-3.0, 7.0))


@pytest.mark.parametrize("heading_rad", [0.0, 0.8, math.pi / 2, -2.5])
@pytest.mark.parametrize("deg", [0.0, 20.0])
def test_a_leaning_rover_stands_parallel_to_a_plane(deg: float, heading_rad: float) -> None:
    ground = slope(deg, 0.6)
    pose = (5.0, 15.0, heading_rad)
    still = KinematicWorld(ground, Config().rover_model()).place(pose)
    start = {name: float(still.columns[name][0]) for name in STATE}
    state = physics.settle_leaning(ground, GEOMETRY, pose, start)
    assert state is not None
    # As it stands on level ground, turned with the plane about the ground under its origin. The
    # origin is in the plane of the wheels' lowest points, above the ground that is asked for there
    # only as far as sideways it moves.
    tilt = math.acos(math.cos(state["pitch_rad"]) * math.cos(state["roll_rad"]))
    assert math.degrees(tilt) == pytest.approx(deg, abs=0.05)
    for name in ("differential_rad", "bogie_left_rad", "bogie_right_rad"):
        assert state[name] == pytest.approx(0.0, abs=2e-3)
    assert state["origin_z_m"] == pytest.approx(ground.height(5.0, 15.0), abs=2e-3)


def test_tracking_is_the_distance_from_the_nearest_commanded_pose() -> None:
    commanded, _ = Motion(0.0, 0.0, 1.0).stances((2.0, 3.0, math.pi), 0.02, 0.1)
    poses = np.array([[1.5, 3.1, math.pi - 0.2], [1.0, 3.0, -math.pi]])
    along, aside, turned = physics._off_track(poses, commanded)
    assert along == pytest.approx([0.0, 0.0], abs=0.011)
    assert aside == pytest.approx([0.1, 0.0], abs=1e-6)
    assert turned == pytest.approx([0.2, 0.0], abs=1e-6)
    # Beyond its end it is ahead.
    along, aside, _ = physics._off_track(np.array([[0.95, 3.0, math.pi]]), commanded)
    assert (along[0], aside[0]) == pytest.approx((0.05, 0.0), abs=1e-6)
    turn, _ = Motion(0.5, 0.0, 0.0).stances((2.0, 3.0, 0.1), 0.02, 0.01)
    along, aside, turned = physics._off_track(np.array([[2.0, 3.05, 0.4]]), turn)
    assert (math.hypot(along[0], aside[0]), turned[0]) == pytest.approx((0.05, 0.0), abs=6e-3)


def test_outside_counts_certified_states_alone() -> None:
    bounds = {"roll_rad": np.array([[0.0, 0.1]] * 3), "safe": np.array([True, True, False])}
    assert physics._outside(np.array([0.05, 0.13, 9.0]), bounds, "roll_rad") == pytest.approx(0.03)
    assert physics._outside(np.array([0.05, -0.02, 9.0]), bounds, "roll_rad") == pytest.approx(0.02)
    bounds["safe"][:] = False
    assert physics._outside(np.array([0.05, 0.13, 9.0]), bounds, "roll_rad") is None


def run(*args: str) -> dict:
    result = CliRunner().invoke(app, ["bench", "physics", *args, "--workers", "0", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_settled_states_are_those_of_physics(tmp_path) -> None:
    args = ("settled", "-t", "0/0,10/.05", "--count", "4", "--out", str(tmp_path))
    report = run(*args)
    rows = {row["case"]: row for row in report["rows"]}
    assert set(rows) == {"0/0", "10/.05", "all"}
    assert rows["all"]["poses"] == 8
    for name in ("roll_rad", "pitch_rad"):
        assert rows["0/0"]["differs_leaning"][name]["max"] < math.radians(0.1)
    assert rows["0/0"]["differs_leaning"]["origin_z_m"]["max"] < 1e-3
    before = (tmp_path / "settled.jsonl").read_bytes()
    assert run(*args) == report  # gone on with: nothing is left to do
    assert (tmp_path / "settled.jsonl").read_bytes() == before


def test_arcs_that_passed_are_driven(tmp_path) -> None:
    report = run("arcs", "-t", "5/.05", "--count", "3", "--out", str(tmp_path))
    row = report["rows"][-1]
    assert row["arcs"] == 3
    assert sum(row["endings"].values()) == 3
    assert row["states"] > 25
    assert row["tracking_m"]["max"] < 0.5
    assert 0.0 < row["tube"]["across_m"] <= row["tracking_m"]["max"]
    assert 0.0 < row["tube"]["heading_deg"] < 20.0
    assert row["passed_with_tracking"] <= 3
    (record,) = [json.loads(line) for line in (tmp_path / "arcs.jsonl").read_text().splitlines()]
    for arc in record["rows"]:
        # The rover went where it was sent, or thereabouts.
        assert math.hypot(*arc["end_error"][:2]) < 0.3


def test_what_cannot_be_measured_is_refused(tmp_path) -> None:
    result = CliRunner().invoke(app, ["bench", "physics", "speed", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "settled, arcs, cost" in result.output
