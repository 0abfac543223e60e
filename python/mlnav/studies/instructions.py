"""Count instructions of planner stages, poses and networks with valgrind's callgrind.

Two builds of everything: `scalar` for processors without vectors, and `vectorised`. The core is the
shipped C++ but for the flags; a network is C that emx-onnx-cgen makes from its model.onnx, with its
generic convolution replaced by ours (conv_op.c.j2). Needs a checkout, CMake, a compiler, valgrind
with its headers, and for networks emx-onnx-cgen and onnxruntime.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav.io import write_text
from mlnav.risk.models import Model
from mlnav.risk.network import network_input
from mlnav.sim.sensor import TruthSensor
from mlnav.terrain import Terrain, load

GROUNDS = ("0/.02", "10/.07", "15/.07", "0/.15", "10/.12", "0/.20", "15/.10", "20/.05")
SEEDS = (9000, 9001)
COSTMAP_CELLS = 4

FUSED = ["-mfma", "-ffp-contract=fast"] if platform.machine() == "x86_64" else []
"""For networks alone: flight processors multiply and add in one instruction (PowerPC's fmadds),
and a network, unlike the core, need not give the same bits everywhere."""

Progress = Callable[[str], None]


class CountingError(ValueError):
    """Instructions cannot be counted here; the message says what is missing or went wrong."""


@dataclass(frozen=True)
class Build:
    """Flags of the core, and further flags of a network's C code."""

    core: tuple[str, ...]
    network: tuple[str, ...]


BUILDS = {
    # MLNAV_SCALAR disables vectors written in the core, the other flag those of the compiler.
    "scalar": Build(("-O2", "-fno-tree-vectorize", "-DMLNAV_SCALAR"), tuple(FUSED)),
    "vectorised": Build(("-O3",), (*FUSED, "-mavx2") if FUSED else ()),
}


def count(
    models: Sequence[Model],
    folder: Path,
    stages: Mapping[str, Any] | None = None,
    progress: Progress = lambda what: None,
) -> dict[str, Any]:
    """Count everything, in the form of `instructions.json`.

    Args:
        models: networks to count.
        folder: for builds, which are reused.
        stages: earlier counts whose stages and checkers are kept; None to count them.
        progress: called with the name of the next step.

    Raises:
        CountingError: a tool is missing, a build fails, or C code differs from its network.
    """
    tools = _Tools.find()
    grounds = [load(spec, seed) for spec in GROUNDS for seed in SEEDS]
    report: dict[str, Any] = {}
    details: dict[str, Any] = {
        m.manifest.name: {"parameters": m.manifest.parameters, "macs": m.manifest.macs}
        for m in models
    }
    for name, build in BUILDS.items():
        if stages is None:
            progress(f"planner, {name}")
            part = _core_counts(tools, build, _windows(grounds, folder / "windows"), folder / name)
        else:
            kept = stages if name == "scalar" else stages[name]
            part = {key: dict(kept[key]) for key in ("network", "stages", "checkers")}
        for model in models:
            progress(f"{model.manifest.name}, {name}")
            counted = _network_counts(tools, build, model, grounds[-1], folder / name)
            part["network"][model.manifest.name] = counted["instructions"]
            details[model.manifest.name][name] = counted
        report |= part if name == "scalar" else {name: part}
    earlier = {} if stages is None else stages.get("models", {})
    report["models"] = {**earlier, **details}
    report["assumptions"] = assumptions(tools.compiler_version())
    return report


def assumptions(compiler: str) -> str:
    """The assumptions of the counts, in a few sentences."""
    flags = "; ".join(
        f"{name}: {' '.join(b.core)}, networks also {' '.join(b.network) or 'nothing'}"
        for name, b in BUILDS.items()
    )
    return (
        f"{platform.machine()} instructions by callgrind, {compiler}; {flags}."
        " rad750_class: scalar, hpsc_class: vectorised. A load folded into an arithmetic"
        " instruction counts as one, so RISC processors run more, for poses and networks alike."
        " Means over cycles on"
        f" {', '.join(GROUNDS)}; networks by emx-onnx-cgen with register-blocked convolutions."
        " One instruction is as long as another: memory is not modelled."
    )


# ------------------------------------------------------------------------------------- the tools


@dataclass(frozen=True)
class _Tools:
    root: Path
    valgrind: str
    cmake: str
    compiler: str

    @classmethod
    def find(cls) -> _Tools:
        root = Path(__file__).parents[3]
        if not (root / "cpp" / "bench" / "count_instructions.cpp").is_file():
            raise CountingError("instructions are counted from a checkout of the sources only")
        venv = str(Path(sys.executable).parent)  # its cmake, even if the venv is not active
        path = os.pathsep.join([venv, os.environ.get("PATH", os.defpath)])
        found = {n: shutil.which(n, path=path) for n in ("valgrind", "cmake", "ninja", "cc")}
        missing = [name for name, where in found.items() if where is None]
        if missing:
            raise CountingError(f"not found: {', '.join(missing)}; please install")
        return cls(root, str(found["valgrind"]), str(found["cmake"]), str(found["cc"]))

    def compiler_version(self) -> str:
        return _run([self.compiler, "--version"]).splitlines()[0]

    def callgrind(self, program: Path, *arguments: Path) -> dict[str, float]:
        """Instructions per call, by name."""
        out = program.with_suffix(".callgrind")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        _run(
            [self.valgrind, "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={out / 'dump'}", str(program), *map(str, arguments)]
        )  # fmt: skip
        return totals(file.read_text(errors="replace") for file in sorted(out.glob("dump.*")))


def totals(dumps: Any) -> dict[str, float]:
    """Mean instructions per call from texts of callgrind's dumps, by name of their trigger.

    Raises:
        CountingError: no counts, as when the program was built without valgrind's headers.
    """
    sums: dict[str, tuple[int, int]] = {}
    for text in dumps:
        trigger = re.search(r"^desc: Trigger: Client Request: (.+) (\d+)$", text, re.MULTILINE)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if trigger is None or total is None:
            continue
        instructions, times = sums.get(trigger[1], (0, 0))
        sums[trigger[1]] = (instructions + int(total[1]), times + int(trigger[2]))
    if not sums:
        raise CountingError("callgrind left no counts: are valgrind's headers installed?")
    return {name: instructions / max(times, 1) for name, (instructions, times) in sums.items()}


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as fault:
        raise CountingError(f"{command[0]}: {fault.strerror or fault}") from fault
    if done.returncode != 0:
        last = " ".join((done.stderr or done.stdout).split()[-60:])
        raise CountingError(f"{Path(command[0]).name} failed ({done.returncode}): {last}")
    return done.stdout


# --------------------------------------------------------------------------------------- the core


def _windows(grounds: Sequence[Terrain], folder: Path) -> list[Path]:
    """Local maps in the middle of terrains, as raw files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for i, terrain in enumerate(grounds):
        z = TruthSensor(terrain, align_cells=COSTMAP_CELLS).window((*_middle(terrain), 0.0)).z
        files.append(folder / f"{i}.f32")
        np.ascontiguousarray(z, np.float32).tofile(files[-1])
    return files


def _middle(terrain: Terrain) -> tuple[float, float]:
    x_min, x_max, y_min, y_max = terrain.extent_m
    return 0.5 * (x_min + x_max), 0.5 * (y_min + y_max)


def _core_counts(
    tools: _Tools, build: Build, windows: Sequence[Path], folder: Path
) -> dict[str, Any]:
    where = folder / "core"
    _run(
        [tools.cmake, "-S", str(tools.root), "-B", str(where), "-G", "Ninja",
         "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={' '.join(build.core)} -DNDEBUG",
         "-DMLNAV_BUILD_BENCH=ON", "-DMLNAV_BUILD_TESTS=OFF"]
    )  # fmt: skip
    _run([tools.cmake, "--build", str(where), "--target", "count_instructions", "--parallel", "2"])
    program = where / "bench" / "count_instructions"
    if build is BUILDS["scalar"]:
        require_scalar(program)
    return by_part(tools.callgrind(program, *windows))


_PACKED = re.compile(
    r"\tv?((?:add|sub|mul|div|sqrt|max|min|fmadd\d+|fmsub\d+)p[sd]|p(?:add|sub|mul)\w+)\s"
)
"""x86 arithmetic on several lanes at once. Moves, masks and conversions of one value use vector
registers too, and are no more work than scalar ones."""


def require_scalar(program: Path) -> None:
    """Check that the core in a program has no vector instructions.

    With them, counts for a processor without vectors would be too low, in particular for poses,
    which the core computes in pairs.

    Raises:
        CountingError: it has; the message names the function.
    """
    if platform.machine() != "x86_64":
        return
    objdump = shutil.which("objdump")
    if objdump is None:
        raise CountingError("not found: objdump; please install (binutils)")
    symbol, found = "", []
    for line in _run([objdump, "-d", "-C", "--no-show-raw-insn", str(program)]).splitlines():
        if line.endswith(">:"):
            symbol = line.partition("<")[2].removesuffix(">:")
        elif "mlnav::" in symbol and (packed := _PACKED.search(line)):
            found.append(f"{packed[1]} in {symbol}")
    if found:
        raise CountingError(
            f"{program}: {len(found)} vector instructions in the scalar build, as {found[0]}"
        )


def by_part(counts: Mapping[str, float]) -> dict[str, Any]:
    """Counts of count_instructions, as `instructions.json` has them."""
    set_map: dict[str, int] = {}
    stages: dict[str, Any] = {"set_map": set_map}
    checkers: dict[str, dict[str, int]] = {}
    network: dict[str, int] = {}
    for name, instructions in counts.items():
        group, key = stages, name
        if name == "sobel":
            group = network
        elif name.startswith("set_map/"):
            group, key = set_map, name.removeprefix("set_map/")
        elif " " in name:
            checker, key = name.split()
            group = checkers.setdefault(checker, {})
        group[key] = round(instructions)
    return {"network": network, "stages": stages, "checkers": checkers}


# ------------------------------------------------------------------------------------ the networks


def _network_counts(
    tools: _Tools, build: Build, model: Model, terrain: Terrain, folder: Path
) -> dict[str, Any]:
    """Instructions of one inference, also with the generator's convolutions, and its difference."""
    ground = _ground(model, terrain)
    expected = _onnxruntime(model, ground)
    where = folder / model.manifest.name
    where.mkdir(parents=True, exist_ok=True)
    ground.tofile(where / "ground.f32")
    counted: dict[str, Any] = {}
    for name, templates in (("instructions", _templates(where)), ("as_generated", None)):
        source = where / f"{name}.c"
        write_text(source, _generated(model.network, templates))
        program = where / name
        _run(
            [tools.compiler, *build.core, *build.network,
             f"-DGROUND_VALUES={ground.size}", f"-DRISK_VALUES={expected.size}",
             str(tools.root / "cpp" / "bench" / "count_network.c"), str(source),
             "-o", str(program), "-lm"]
        )  # fmt: skip
        counted[name] = round(
            tools.callgrind(program, where / "ground.f32", where / "risk.f32")["network"]
        )
        risk = np.fromfile(where / "risk.f32", np.float32)
        difference = float(np.abs(risk - expected.ravel()).max())
        if not difference < 1e-3:
            raise CountingError(
                f"{model.folder}: the C code differs from onnxruntime by {difference:g}"
            )
        counted.setdefault("max_difference", difference)
    counted["instructions_per_mac"] = round(
        counted["instructions"] / max(model.manifest.macs, 1), 3
    )
    return counted


def _ground(model: Model, terrain: Terrain) -> NDArray[np.float32]:
    """The network's input in the middle of a terrain of the same resolution."""
    ny, nx = model.manifest.input.cells
    x, y = _middle(terrain)
    iy, ix = terrain.cell(x, y)
    y0, x0 = iy - ny // 2, ix - nx // 2
    ground = network_input(terrain.z[y0 : y0 + ny, x0 : x0 + nx].astype(np.float32))
    if ground.shape[-2:] != (ny, nx):
        raise CountingError(f"{model.folder}: its window is larger than the ground")
    return ground


def _onnxruntime(model: Model, ground: NDArray[np.float32]) -> NDArray[np.float32]:
    try:
        import onnxruntime
    except ImportError as fault:
        raise CountingError("networks are checked against onnxruntime: install it") from fault
    session = onnxruntime.InferenceSession(model.network, providers=["CPUExecutionProvider"])
    (risk,) = session.run([model.manifest.output.name], {model.manifest.input.name: ground})
    return np.asarray(risk, np.float32)


def _templates(folder: Path) -> Path:
    """The generator's templates, with our convolution."""
    generator = _emx("emx_onnx_cgen")
    templates = folder / "templates"
    shutil.copytree(Path(generator.__file__).parent / "templates", templates, dirs_exist_ok=True)
    shutil.copy(Path(__file__).with_name("conv_op.c.j2"), templates)
    return templates


def _generated(network: bytes, templates: Path | None) -> str:
    compiler = _emx("emx_onnx_cgen.compiler")
    options = compiler.CompilerOptions(
        template_dir=templates,
        model_name="network",
        large_temp_threshold_bytes=0,
        large_weight_threshold=0,
    )
    import onnx

    source: str = compiler.Compiler(options).compile(onnx.load_from_string(network))
    return source


def _emx(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise CountingError(
            "networks are turned into C by emx-onnx-cgen: pip install emx-onnx-cgen"
        ) from fault
