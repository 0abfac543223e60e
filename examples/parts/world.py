"""A world: the rover loses a share of every arc, as on sand, and settles where it gets to.

mlnav traverse --terrain 5/.03 --world examples/parts/world.py:Sandy
"""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from mlnav.config import Config, World
from mlnav.nav import Motion, Pose
from mlnav.sim import Execution, KinematicWorld, SettledStates
from mlnav.sim.world import judged_model
from mlnav.terrain import Terrain


class Sandy:
    """The kinematic world with shorter arcs; wheels count the whole way."""

    class Settings(World):
        """Beside what all worlds have: limits, and whether the run ends there."""

        lost: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1

    def __init__(self, settings: Settings, config: Config, terrain: Terrain) -> None:
        self._kept = 1.0 - settings.lost
        self._firm = KinematicWorld(
            terrain, judged_model(config, settings.limits), stop_at_limits=settings.stop_at_limits
        )

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down: one state, safe or not."""
        return self._firm.place(pose)

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion."""
        shorter = replace(motion, length_m=self._kept * motion.length_m, end=None)
        done = self._firm.execute(pose, shorter)
        forward, left, turned = done.counted
        return replace(done, counted=(forward / self._kept, left / self._kept, turned))
