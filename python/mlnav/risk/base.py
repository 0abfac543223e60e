"""The interface of heuristics, and the risk map that they give the planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlnav.core import HeightMap, as_float32, frozen_copy
from mlnav.parts import Part, Validated

Pose = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class RiskMap:
    """Risk by heading and place; its cells need not be those of the heightmap. Its array is a copy.

    Attributes:
        p: (bins, ny, nx) float32 in [0, 1]; bin k is heading 2 pi k / bins, one bin is any heading.
            Values that are not finite carry no information.
        resolution_m: edge of a square cell.
        origin_m: x, y of the centre of cell (0, 0), world frame.
    """

    p: NDArray[np.float32]
    resolution_m: float
    origin_m: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", frozen_copy(as_float32("risk", self.p, 3)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: the array is read-only in another process too.
        return type(self), (self.p, self.resolution_m, self.origin_m)


ROUNDING = 1e-4
"""How far beyond [0, 1] rounding may take a risk; it is clamped."""


def held_to_contract(risk: RiskMap) -> tuple[RiskMap | None, str | None]:
    """A heuristic's map for the planner, or None and what is wrong with it.

    Rounding errors beyond [0, 1] are clamped; values further out are no risks (logits, percent).
    """
    known = risk.p[np.isfinite(risk.p)]
    if not known.size:
        return risk, None
    low, high = float(known.min()), float(known.max())
    if low >= 0.0 and high <= 1.0:
        return risk, None
    if low < -ROUNDING or high > 1.0 + ROUNDING:
        return None, (
            f"risk from {low:.6g} to {high:.6g} is not within 0 to 1; planned as the baseline does"
        )
    return RiskMap(np.clip(risk.p, 0.0, 1.0), risk.resolution_m, risk.origin_m), None


class Heuristic(Protocol):
    """Predicts risk from the map that the planner sees. One heuristic is one traverse."""

    @property
    def name(self) -> str:
        """As in the configuration."""

    @property
    def inferences(self) -> int:
        """Maps computed so far; reused ones do not count."""

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """The risk map about a pose on a local map, or None for no opinion."""

    def max_cells(self, map_cells: int) -> int:
        """Most values (bins x cells) that `risk` returns for a map of `map_cells` cells."""

    def take_events(self) -> tuple[str, ...]:
        """Faults since the last call, each a line 'heuristic: ...'; lasting ones are given once."""


class SteadyHeuristic:
    """A heuristic that cannot fail in use."""

    inferences: int = 0

    def take_events(self) -> tuple[str, ...]:
        """None."""
        return ()


class ValidatedHeuristic(Validated):
    """A heuristic from outside; it needs `risk` and `max_cells` only."""

    methods = ("risk", "max_cells")

    def __init__(self, made: Any, part: Part) -> None:
        super().__init__(made, part)
        self._room = 0
        self.name = part.name
        self.inferences = 0

    def max_cells(self, map_cells: int) -> int:
        """As the heuristic says."""
        room = self._call("max_cells", map_cells)
        self._part.expect(
            isinstance(room, int) and room >= 0, f"max_cells() must be a count, not {room!r}"
        )
        self._room = room
        return self._room

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """The risk map; the first one is made twice, and must come out the same."""
        risk: RiskMap | None = self._call("risk", local_map, pose)
        again = risk if self.inferences else self._call("risk", local_map, pose)
        expect, given = self._part.expect, type(risk).__name__
        expect(risk is None or isinstance(risk, RiskMap), f"risk() gives a {given}, no RiskMap")
        if risk is None:
            return None
        self.inferences += 1
        same = again is not None and np.array_equal(again.p, risk.p, equal_nan=True)
        expect(same, "risk() gives two maps of one map and pose")
        expect(
            risk.p.size <= self._room,
            f"a map of {risk.p.size} values; max_cells() says {self._room}",
        )
        frame = (risk.resolution_m, *risk.origin_m)
        expect(bool(np.isfinite(frame).all()), f"resolution and origin {frame} are not finite")
        expect(risk.resolution_m > 0.0, f"resolution_m {risk.resolution_m:g} is not positive")
        return risk

    def take_events(self) -> tuple[str, ...]:
        """As the heuristic says, if it says anything."""
        return tuple(self._optional("take_events", ()))
