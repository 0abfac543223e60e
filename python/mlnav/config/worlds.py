"""The worlds that a rover drives in."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from mlnav.config.rover import Limits
from mlnav.config.section import PartSection, Positive, Section, from_preset


class World(PartSection):
    """The base of all worlds: the limits, and whether an unsafe state ends the run."""

    kind: ClassVar[str] = "world"
    limits: Limits | None = None
    """Of a safe state in this world, written as `limits`; null: the planner's."""
    stop_at_limits: bool = True
    """An unsafe state ends the run with `unsafe_state`. False: the run drives on and counts them;
    it is no success."""


class Kinematic(World):
    """The rover settles on the ground at every step and follows commands exactly."""

    name: Literal["kinematic"] = "kinematic"
    settle_step_m: Positive = 0.02
    """Between judged states along an arc: finer than a checker's poses, and out of phase."""
    settle_turn_deg: Positive = 0.5
    """In a turn in place."""
    settle_steer_deg: Positive = 2.0
    """While the rover stands and its wheels steer, of the wheel that steers furthest."""


class Slip(Section):
    """Wheel slip on soft ground, a share of the distance: level x exp(slope / growth), limited.

    The slope is along the motion, uphill positive. Written as the name of a soil, as a soil with
    changes, `{soil: sand, level: 0.1}`, or as the numbers.
    """

    level: Annotated[float, Field(ge=0, lt=1)]
    """On level ground."""
    growth_deg: Positive
    """Slope over which slip grows by a factor e."""
    share_max: Annotated[float, Field(ge=0, lt=1)] = 0.95

    soils: ClassVar[dict[str, dict[str, float]]] = {
        "none": {"level": 0.0, "growth_deg": 10.0},
        "bedrock": {"level": 0.01, "growth_deg": 15.0},  # 20 deg: 4 %
        "compact": {"level": 0.03, "growth_deg": 11.0},  # 10 deg: 7 %, 20 deg: 18 %
        "sand": {"level": 0.08, "growth_deg": 8.0},  # 10 deg: 28 %, 15 deg: 52 %, 20 deg: 95 %
    }

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Numbers from the name of a soil, or from a soil and changes."""
        return from_preset("soil", data, "soil", cls.soils)

    def share(self, slope_rad: float) -> float:
        """Share of the commanded distance that is lost at a slope along the motion."""
        if self.level == 0.0:
            return 0.0
        exponent = min(math.degrees(slope_rad) / self.growth_deg, 50.0)
        return min(self.share_max, self.level * math.exp(exponent))


class Bullet(World):
    """Rigid-body physics (PyBullet, extra `sim`): the rover drives with wheels that can slip."""

    name: Literal["bullet"] = "bullet"
    mass_kg: Positive = 1025.0
    """Of the whole rover; its parts keep their shares."""
    friction: Positive = 0.75
    """Coulomb's, between wheel and ground."""
    slip: Slip = Slip.model_validate("none")
    """Of soft ground, besides that by friction."""
    speed_m_s: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of the fastest wheel. Flight drives 0.042; faster ends within 0.02 m of that up to 0.2."""
    wheel_torque_nm: Positive = 400.0
    """At most, of a wheel's motor."""
    follows_path: bool = False
    """Steers back to the commanded arc and closes turns on heading and arcs on length, by the true
    pose, ten times a second. False: open loop, as commanded."""
    steps_per_s: Annotated[int, Field(ge=60, le=2000)] = 120
    solver_iterations: Annotated[int, Field(ge=10, le=1000)] = 50
    patch_half_width_m: Annotated[float, Field(ge=8.0)] = 16.0
    """Of the square of ground about the rover that is in the physics. A larger one takes more
    memory (0.7 kB a cell) and changes only the last digits."""
    edge_m: Annotated[float, Field(ge=2.0)] = 3.0
    """Nearer to the map's edge the run ends with `map_edge`."""
    state_step_m: Positive = 0.02
    """Driven between recorded and judged states."""
    state_turn_deg: Positive = 0.5
    """Turned between them. While wheels steer at a standstill there are ten a second."""
    limits: Limits | None = Limits.model_validate("enav_like")
    """Of a safe state in this world, written as `limits`; null: the planner's. A rover is a tenth
    of a metre off its path: stricter limits of the planner leave room for that."""
    stop_at_limits: bool = True
    """A state beyond the limits or belly contact ends the run with `unsafe_state`. False: the run
    drives on, and is no success."""
