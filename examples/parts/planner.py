"""A planner: of a fan of turns, each with a straight line behind it, the one nearest to the goal.

mlnav traverse --terrain 5/.03 --planner examples/parts/planner.py:Fan
"""

import math

import numpy as np

from mlnav import _core
from mlnav.config import Config, Count, Planner, Positive
from mlnav.nav import Motion, Plan, PlanRequest


class Fan:
    """Tries headings in order of their distance from the bearing of the goal."""

    class Settings(Planner):
        """Size of the fan."""

        headings: Count = 36
        length_m: Positive = 1.0

    def __init__(
        self,
        settings: Settings,
        config: Config,
        checker: _core.Checker,
        max_map_cells: int,
        max_risk_cells: int,
    ) -> None:
        self._settings, self._checker = settings, checker

    def plan(self, request: PlanRequest) -> Plan:
        """One cycle; the checker has the map already."""
        x, y, heading = request.pose
        dx, dy = request.goal[0] - x, request.goal[1] - y
        if math.hypot(dx, dy) <= request.goal_tolerance_m:
            return Plan("goal_reached")
        start = np.array([[x, y, heading, request.standing_curvature_per_m]])
        reasons = int(self._checker.reasons(start)[0])
        if reasons:
            return Plan("start_unsafe", start_reasons=reasons, ace_evaluations=1)
        spread = math.tau * np.arange(self._settings.headings) / self._settings.headings
        turns = np.angle(np.exp(1j * (math.atan2(dy, dx) - heading + spread)))
        aside = np.abs(np.angle(np.exp(1j * spread)))
        evaluations = 1
        for tried, i in enumerate(np.argsort(aside, kind="stable"), start=1):
            motion = Motion(float(turns[i]), 0.0, self._settings.length_m)
            sweeps = motion.sweeps(request.pose, request.standing_curvature_per_m)
            evaluations += len(sweeps)
            poses, _ = motion.poses(request.pose, 0.25, math.radians(10.0))
            if self._forbidden(request, poses) or self._checker.reasons(sweeps).any():
                continue
            return Plan(
                "path",
                motion.turn_rad,
                0.0,
                motion.length_m,
                path=np.vstack([start[:, :3], poses]),
                ace_evaluations=evaluations,
                ace_floor=1 + len(sweeps),
                paths=len(turns),
                paths_finite=len(turns),
                paths_tried=tried,
                chosen_rank=tried - 1,
                path_cost=float(aside[i]),
            )
        return Plan("no_safe_path", ace_evaluations=evaluations, paths_tried=len(turns))

    @staticmethod
    def _forbidden(request: PlanRequest, poses: np.ndarray, radius_m: float = 2.0) -> bool:
        """Whether a forbidden cell is within reach of the rover somewhere on the way."""
        local = request.local_map
        if local.keep_out is None:
            return False
        cells = np.argwhere(local.keep_out)[:, ::-1] * local.resolution_m + local.origin_m
        apart = np.linalg.norm(cells[:, np.newaxis] - poses[:, :2], axis=2)
        return bool((apart < radius_m).any())
