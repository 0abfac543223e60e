"""Heuristics: whatever fills a risk map, the chance that ACE rejects the rover somewhere.

A risk map only reorders and prices candidates; ACE alone decides safety.
"""

from mlnav.risk.heuristics import Heuristic, NoRisk, RiskMap, SobelRisk, make_heuristic

__all__ = ["Heuristic", "NoRisk", "RiskMap", "SobelRisk", "make_heuristic"]
