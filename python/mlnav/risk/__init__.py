"""Heuristics: whatever fills a risk map, the chance that ACE rejects the rover somewhere.

A risk map only reorders and prices candidates; ACE alone decides safety.
"""

from mlnav.risk.base import Heuristic, RiskMap, held_to_contract
from mlnav.risk.heuristics import NoRisk, SobelRisk, make_heuristic
from mlnav.risk.models import Manifest, Model, ModelError, model_folder, model_names, read_model
from mlnav.risk.network import NetworkRisk
from mlnav.risk.oracle import OracleRisk

__all__ = [
    "Heuristic", "Manifest", "Model", "ModelError", "NetworkRisk", "NoRisk", "OracleRisk",
    "RiskMap", "SobelRisk", "held_to_contract", "make_heuristic", "model_folder", "model_names",
    "read_model",
]  # fmt: skip
