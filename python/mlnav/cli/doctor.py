"""`mlnav doctor`: check the installation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from mlnav import __version__
from mlnav.cli import options
from mlnav.cli.common import ENDED, OK, emit, output

_PACKAGES = ("numpy", "scipy", "matplotlib", "pydantic", "rasterio", "typer", "pillow")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+).*;.*\bextra == [\"'](?P<extra>\w+)[\"']")

Finding = tuple[str, bool, str]


def doctor_command(
    out: options.Out = Path("out"),
    as_json: options.Json = False,
) -> None:
    """Check the installation: versions, compiled core, threads, output folder, terrains, models.

    Exit code 0 if nothing required is missing, otherwise 1.

    **Examples**

    - mlnav doctor
    - mlnav doctor --json
    """
    findings = [*_versions(), *_core_works(), _writable(out), *_terrains(), *_models()]
    notes = {
        "threads": ", ".join(f"{k}={os.environ.get(k, 'unset')}" for k in _THREADS),
        "cpus": str(os.cpu_count()),
    }
    extras = _extras()
    well = all(good for _, good, _ in findings)
    if as_json:
        checks = {name: {"ok": good, "detail": text} for name, good, text in findings}
        emit({"ok": well, "checks": checks, "notes": notes, "extras": extras})
    else:
        for name, good, text in findings:
            mark = "[green]ok[/]   " if good else "[bold red]FAULT[/]"
            output.print(f"{mark} {name}: {text}", soft_wrap=True)
        for name, text in notes.items():
            output.print(f"note  {name}: {text}", soft_wrap=True)
        for name, extra in extras.items():
            there = ", ".join(f"{p} {version}" for p, version in extra["installed"].items())
            missing = ", ".join(extra["missing"])
            lack = f"{missing} missing: {escape(extra['install'])}" if missing else ""
            text = "; ".join(filter(None, (there, lack)))
            output.print(f"note  extra {name}: {text}", soft_wrap=True)
    raise typer.Exit(OK if well else ENDED)


def _version(package: str) -> str | None:
    """None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _versions() -> list[Finding]:
    versions = {package: _version(package) for package in _PACKAGES}
    missing = [package for package, version in versions.items() if version is None]
    installed = ", ".join(f"{package} {version}" for package, version in versions.items())
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return [
        ("python", sys.version_info >= (3, 11), python),
        ("mlnav", True, f"{__version__} in {Path(__file__).parents[1]}"),
        ("packages", not missing, f"{missing[0]} is not installed" if missing else installed),
    ]


def _extras() -> dict[str, dict[str, Any]]:
    """What the package's own metadata says of each optional part, but that of developers."""
    extras: dict[str, dict[str, Any]] = {}
    for requirement in importlib.metadata.requires("mlnav") or ():
        found = _REQUIREMENT.match(requirement)
        if found is None or found["extra"] == "dev":
            continue
        name = found["extra"]
        extra = extras.setdefault(
            name, {"installed": {}, "missing": [], "install": f"pip install 'mlnav[{name}]'"}
        )
        version = _version(found["package"])
        if version is None:
            extra["missing"].append(found["package"])
        else:
            extra["installed"][found["package"]] = version
    return dict(sorted(extras.items()))


def _core_works() -> list[Finding]:
    try:
        import numpy as np

        from mlnav import _core
        from mlnav.config import Config

        level = _core.Grid(np.zeros((80, 80), np.float32), 0.1, 0.0, 0.0)
        state = _core.settle(level, Config().rover_model(), np.array([[4.0, 4.0, 0.3]]))
        settled = int(state["status"][0]) == 0
        text = f"{_core.__version__}, {_core.__file__}"
        same = _core.__version__ == __version__
        return [
            ("compiled core", same, text if same else f"{text}: not the version of the package"),
            ("rover settles on level ground", settled, "yes" if settled else "no"),
        ]
    except Exception as fault:  # whatever keeps it from loading is the finding
        return [("compiled core", False, f"{type(fault).__name__}: {fault}")]


def _writable(out: Path) -> Finding:
    folder = out
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return "output folder", True, f"{out} can be written"
    except OSError as fault:
        return "output folder", False, f"{folder}: {fault.strerror or fault}"


def _terrains() -> list[Finding]:
    from mlnav.studies.cases import real_terrain_files
    from mlnav.terrain import recipe_folder, recipe_names

    names = recipe_names()
    found = f"{', '.join(names)} in {recipe_folder()}" if names else f"none in {recipe_folder()}"
    real = [f.stem for f in real_terrain_files()]
    return [
        ("recipes", bool(names), found),
        ("real terrains", True, ", ".join(real) or "none (set MLNAV_REAL_TERRAINS to a folder)"),
    ]


def _models() -> list[Finding]:
    from mlnav.risk import ModelError, model_folder, model_names, read_model

    folder = model_folder()
    findings: list[Finding] = []
    good = []
    for name in model_names():
        try:
            labels = read_model(folder / name).manifest.labels
            good.append(f"{name} for {labels.checker}, {labels.limits}")
        except ModelError as fault:
            findings.append((f"model {name}", False, str(fault)))
    if good:
        findings.insert(0, ("models", True, f"{'; '.join(good)}; checksums hold"))
    elif not findings:
        findings.append(("models", True, f"none in {folder}"))
    version = _version("onnxruntime")
    absent = "onnxruntime is not installed: heuristic network plans as the baseline does"
    return [("inference", True, f"onnxruntime {version}" if version else absent), *findings]
