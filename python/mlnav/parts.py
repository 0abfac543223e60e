"""Parts by name: planners, checkers, heuristics, worlds, sensors, localizations, terrain sources.

A part is a section of the configuration (its model), a maker and the libraries it needs. What names
mean and what classes from outside are called with is in `docs/parts.md`.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

GROUP = "mlnav.parts"
"""Of entry points."""

_FILE = re.compile(r"([^:]+\.py):(\w+)")


class PartError(ValueError):
    """A part does not exist, cannot be made, or breaks its contract; the message names it."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or a list of what is known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


@dataclass(frozen=True)
class Part:
    """A part and how to make it.

    Attributes:
        kind: of `KINDS`.
        name: in the configuration.
        model_at: `module:attribute` of its section of the configuration; empty: it has none.
        maker_at: `module:attribute` of its maker.
        needs: how to install the libraries that it imports, by name.
        version: of the distribution whose entry point declares it.
        outside: it is not of this package.
    """

    kind: str
    name: str
    model_at: str
    maker_at: str
    needs: Mapping[str, str] = field(default_factory=dict, hash=False)
    version: str | None = None
    outside: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def model(self) -> Any:
        """Its section of the configuration."""
        return _named(self.model_at)

    def require(self) -> None:
        """Raise PartError where a library that it needs is missing."""
        for library, how in self.needs.items():
            if importlib.util.find_spec(library) is None:
                raise PartError(f"{self} needs {library} ({how})")

    def make(self, *given: Any) -> Any:
        """Call its maker. Raises PartError: a library is missing, or a maker from outside fails."""
        self.require()
        maker = _named(self.maker_at)
        with self.guard():
            return maker(*given)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn errors of code from outside, but not this package's own, into PartError."""
        try:
            yield
        except Exception as fault:
            if not self.outside or type(fault).__module__.partition(".")[0] == "mlnav":
                raise
            raise PartError(f"{self}: {type(fault).__name__}: {fault}") from fault

    def expect(self, holds: bool, what: str) -> None:
        """Raise PartError, with the part's name and `what`, where its contract does not hold."""
        if not holds:
            raise PartError(f"{self}: {what}")

    @property
    def module(self) -> ModuleType:
        """The module that its maker is in."""
        return _module(self.maker_at.rpartition(":")[0])

    @property
    def origin(self) -> dict[str, str]:
        """Name, module and sha256 of its file; the version where a distribution declares it."""
        module = self.module
        found = {"name": self.name, "module": module.__name__, "sha256": _sha256(module)}
        return found if self.version is None else {**found, "version": self.version}


class Validated:
    """A part from outside, held to its contract while it is used."""

    methods: ClassVar[tuple[str, ...]] = ()
    """Methods that it must have."""

    def __init__(self, made: Any, part: Part, settings: Mapping[str, float] | None = None) -> None:
        """The part's object, and the numbers of its settings by key of the configuration."""
        self._made, self._part, self._settings = made, part, dict(settings or {})
        for method in self.methods:
            part.expect(callable(getattr(made, method, None)), f"has no {method}()")

    def as_built(self) -> dict[str, float]:
        """What the part reads back of itself, or its settings."""
        found: dict[str, float] = self._optional("as_built", self._settings)
        return found

    def _call(self, method: str, *given: Any, gives: type | None = None) -> Any:
        """The answer of a method. Raises PartError: it fails, or answers no `gives`."""
        with self._part.guard():
            answer = getattr(self._made, method)(*given)
        if gives is not None:
            what = f"{method}() gives a {type(answer).__name__}, no {gives.__name__}"
            self._part.expect(isinstance(answer, gives), what)
        return answer

    def _optional(self, method: str, default: Any = None) -> Any:
        """The answer of a method that a part may leave out."""
        return self._call(method) if getattr(self._made, method, None) else default


# The base of each kind's section, and the parts of this package.
_BASES = {
    "checker": "mlnav.config.checkers:Checker",
    "planner": "mlnav.config.planners:Planner",
    "heuristic": "mlnav.config.heuristics:Predictor",
    "world": "mlnav.config.worlds:World",
    "sensor": "mlnav.config.sensors:Sensor",
    "localization": "mlnav.config.localizations:Localization",
    "terrain": "",
}
KINDS = tuple(_BASES)
SECTIONS = tuple(kind for kind, base in _BASES.items() if base)
"""Kinds that a configuration has a section of."""

_CHECKER = "mlnav.config.checkers:build"
_BUILT_IN = (
    Part("checker", "verified", "mlnav.config:Verified", _CHECKER),
    Part("checker", "fixed_box", "mlnav.config:FixedBox", _CHECKER),
    Part("checker", "probabilistic", "mlnav.config:Probabilistic", _CHECKER),
    Part("checker", "settle", "mlnav.config:Settle", _CHECKER),
    Part("planner", "enav", "mlnav.config:Enav", "mlnav.nav.enav:EnavPlanner"),
    Part("heuristic", "none", "mlnav.config:NoHeuristic", "mlnav.risk.heuristics:NoRisk"),
    Part("heuristic", "failures", "mlnav.config:Failures", "mlnav.risk.heuristics:FailureRisk"),
    Part("heuristic", "sobel", "mlnav.config:Sobel", "mlnav.risk.heuristics:SobelRisk"),
    Part("heuristic", "network", "mlnav.config:Network", "mlnav.risk.network:NetworkRisk"),
    Part("heuristic", "oracle", "mlnav.config:Oracle", "mlnav.risk.oracle:OracleRisk"),
    Part("world", "kinematic", "mlnav.config:Kinematic", "mlnav.sim.world:KinematicWorld.of"),
    Part("world", "bullet", "mlnav.config:Bullet", "mlnav.sim.bullet:BulletWorld.of",
         {"pybullet": "pip install 'mlnav[sim]'"}),
    Part("sensor", "truth", "mlnav.config:TruthSensor", "mlnav.sim.sensor:TruthSensor.of"),
    Part("sensor", "stereo", "mlnav.config:Stereo", "mlnav.sim.stereo:StereoSensor"),
    Part("localization", "truth", "mlnav.config:TruePose",
         "mlnav.sim.localization:TrueLocalization"),
    Part("localization", "visual", "mlnav.config:VisualOdometry",
         "mlnav.sim.localization:OdometryLocalization"),
    Part("localization", "wheel", "mlnav.config:WheelOdometry",
         "mlnav.sim.localization:OdometryLocalization"),
    # Terrains of this package are known by what their names look like.
    Part("terrain", "FILE.tif", "", "mlnav.terrain.library:GeoTiff"),
    Part("terrain", "FILE.yaml", "", "mlnav.terrain.library:RecipeFile"),
    Part("terrain", "SLOPE/COVER", "", "mlnav.terrain.library:TerrainClass"),
    Part("terrain", "RECIPE", "", "mlnav.terrain.library:ShippedRecipe"),
)  # fmt: skip


def names_of(kind: str) -> list[str]:
    """Names of the parts of a kind: those of this package, then those of entry points."""
    declared = sorted(name for its_kind, name in _entry_points() if its_kind == kind)
    return [p.name for p in _BUILT_IN if p.kind == kind] + declared


def find(kind: str, name: str) -> Part:
    """The part of a name. Raises PartError: there is none; the nearest name is given."""
    found = [p for p in _BUILT_IN if (p.kind, p.name) == (kind, name)]
    found += [_outside(kind, name, *ref) for ref in _entry_points().get((kind, name), ())]
    if len(found) > 1:
        raise PartError(f"{kind} {name}: installed packages declare it more than once")
    if found:
        return found[0]
    if ":" in name:
        return _outside(kind, name, name)
    raise PartError(f"no {kind} {name!r}{suggestion(name, names_of(kind))}")


def anchored(data: Any, folder: Path) -> Any:
    """A tree of YAML with paths of part files made relative to the working directory."""
    if isinstance(data, Mapping):
        return {key: anchored(value, folder) for key, value in data.items()}
    if isinstance(data, list):
        return [anchored(value, folder) for value in data]
    match = _FILE.fullmatch(data) if isinstance(data, str) else None
    if match and (folder / match[1]).is_file():
        return f"{folder / match[1]}:{match[2]}"
    return data


def digest(config: Any) -> str | None:
    """Digest of the parts from outside in a configuration; None: it has none."""
    found = provenance(config)
    text = json.dumps(found, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16] if found else None


def require_parts(config: Any) -> None:
    """Raise PartError where a library is missing that a configuration's parts need."""
    for kind in SECTIONS:
        find(kind, getattr(config, kind).name).require()


def provenance(config: Any, terrain: str = "") -> dict[str, dict[str, str]]:
    """Origins of the parts from outside of a configuration and a terrain, by kind."""
    named = {kind: getattr(config, kind).name for kind in SECTIONS}
    if ":" in terrain or ("terrain", terrain) in _entry_points():
        named["terrain"] = terrain
    found = {kind: find(kind, name) for kind, name in named.items()}
    return {kind: part.origin for kind, part in found.items() if part.outside}


# ------------------------------------------------------------------------------------ from outside


@cache
def _entry_points() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """(`module:attribute`, version) of what entry points declare, by kind and name."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        if kind in KINDS and name:
            version = entry.dist.version if entry.dist is not None else ""
            at = f"{entry.module}:{entry.attr}"
            found.setdefault((kind, name), []).append((at, version))
    return found


def _outside(kind: str, name: str, at: str, version: str | None = None) -> Part:
    part = Part(kind, name, "", at, {}, version, outside=True)
    with part.guard():
        module = part.module
    made_by, (where, _, attribute) = _named(at), at.rpartition(":")
    if not callable(made_by):
        near = [k for k, v in vars(module).items() if isinstance(v, type) and k[0] != "_"]
        raise PartError(f"{part}: {where} has no class {attribute!r}{suggestion(attribute, near)}")
    model_at = f"{at}.Settings" if hasattr(made_by, "Settings") else _BASES[kind]
    if model_at and not issubclass(_named(model_at), _named(_BASES[kind])):
        raise PartError(f"{part}: its Settings must derive from {_BASES[kind].replace(':', '.')}")
    return replace(part, model_at=model_at, needs=getattr(made_by, "needs", {}))


def _named(at: str) -> Any:
    """What `module:attribute` names; None: the module has no such attribute."""
    where, _, path = at.rpartition(":")
    found: Any = _module(where)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _module(where: str) -> ModuleType:
    if where.endswith(".py"):
        try:
            return _loaded(str(Path(where).resolve()))
        except OSError as fault:
            raise PartError(f"{where}: cannot be read: {fault.strerror or fault}") from fault
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as fault:
        if fault.name is None or not where.startswith(fault.name):
            raise
        raise PartError(
            f"no module {where!r} is installed; a class in a file is path/to/file.py:Class"
        ) from fault


@cache
def _loaded(path: str) -> ModuleType:
    """A file as a module, once a process."""
    source = Path(path).read_bytes()
    name = f"mlnav_part_{Path(path).stem}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look their module up
    module.__dict__["__mlnav_sha256__"] = hashlib.sha256(source).hexdigest()
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def of_file(model: type[Any]) -> str | None:
    """Digest of the file that a model was loaded from; None: its module is installed."""
    return getattr(sys.modules.get(model.__module__), "__mlnav_sha256__", None)


def _sha256(module: ModuleType) -> str:
    path, loaded = getattr(module, "__file__", None), getattr(module, "__mlnav_sha256__", None)
    return loaded or (hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else "")
