"""What results were made with: versions, digests, machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import mlnav
from mlnav import _core

_PACKAGES = ("numpy", "scipy", "onnxruntime", "pybullet", "rasterio", "pyarrow")

_LOOKS_ON = ("campaign", "cli", "compute", "learn", "report", "stats", "studies", "viz")
"""Folders of what looks at results and does not make them."""


@lru_cache(maxsize=1)
def core_digest() -> str:
    """Of the compiled core."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:16]


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Of everything that decides a run: the compiled core and the package's Python."""
    digest = hashlib.sha256(core_digest().encode())
    root = Path(mlnav.__file__).parent
    for path in sorted(root.rglob("*.py")):
        part = path.relative_to(root)
        if part.parts[0] not in _LOOKS_ON:
            digest.update(str(part).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def provenance() -> dict[str, Any]:
    """Versions, digests and the machine."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "mlnav": mlnav.__version__,
        "python": platform.python_version(),
        "packages": versions,
        "code": code_digest(),
        "core": core_digest(),
        "host": platform.node(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
