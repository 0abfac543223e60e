"""The folders of the package depend on each other one way."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest

import mlnav

ROOT = Path(mlnav.__file__).parent

LAYERS = (
    ("io", "stats", "_core", "parts", "core", "linkage"),
    ("config", "compute", "terrain"),
    ("risk",),
    ("nav",),
    ("sim",),
    ("trials",),
    ("campaign",),
    ("viz", "learn"),
    ("studies", "report"),
    ("cli",),
)
"""Each may import those before it, and in a row those before them in it."""

ORDER = {name: i for i, name in enumerate(n for row in LAYERS for n in row)}


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules of the package that a file imports, and whether when it is loaded; not for types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))

    def inside(kind: type[ast.AST]) -> set[int]:
        return {id(i) for n in ast.walk(tree) if isinstance(n, kind) for i in ast.walk(n)}

    late = inside(ast.FunctionDef)
    typing = {
        id(i)
        for n in ast.walk(tree)
        if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
        for i in ast.walk(n)
    }
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            inner = [f"{node.module}.{a.name}" for a in node.names]
            modules = [n for n in inner if is_module(n)]
            names = modules + ([node.module] if len(modules) < len(inner) else [])
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        mine = (n for n in names if n.split(".")[0] == "mlnav" and id(node) not in typing)
        found += [(n, id(node) not in late) for n in mine]
    return found


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else None


def room_of(path: Path) -> str | None:
    return room(".".join(["mlnav", *path.relative_to(ROOT).with_suffix("").parts]))


SOURCES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem in ORDER)


def test_every_folder_has_a_layer() -> None:
    folders = {p.parent.name for p in ROOT.glob("*/__init__.py")}
    assert folders <= set(ORDER), "give it a place in LAYERS"


def test_folders_import_downwards_alone() -> None:
    wrong = []
    for path in SOURCES:
        mine = room_of(path)
        for module, _ in imports(path):
            theirs = room(module)
            if mine and theirs and mine != theirs and ORDER[theirs] > ORDER[mine]:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_no_files_import_each_other_in_a_circle() -> None:
    names = {
        path: ".".join(["mlnav", *path.relative_to(ROOT).with_suffix("").parts]) for path in SOURCES
    }
    by_name = {name.removesuffix(".__init__"): path for path, name in names.items()}
    graph = {
        path: {
            by_name[m] for m, now in imports(path) if now and m in by_name and by_name[m] != path
        }
        for path in SOURCES
    }
    done: set[Path] = set()

    def visit(path: Path, way: tuple[Path, ...]) -> None:
        assert path not in way, " -> ".join(names[p] for p in (*way[way.index(path) :], path))
        if path not in done:
            for other in sorted(graph[path]):
                visit(other, (*way, path))
            done.add(path)

    for path in SOURCES:
        visit(path, ())


def test_what_is_slow_to_import_stays_in_its_room() -> None:
    allowed = {
        "torch": ("learn",),
        "pybullet": ("sim", "viz"),
        "loky": ("compute",),
        "plotly": ("report",),
        "jinja2": ("report",),
        "pyarrow": ("campaign", "trials"),
        "typer": ("cli",),
    }
    wrong = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            wrong += [
                f"{path.relative_to(ROOT)}: {m}"
                for m in modules
                for library in [m.split(".")[0]]
                if library in allowed and room_of(path) not in allowed[library]
            ]
    assert not wrong


@pytest.mark.parametrize("name", sorted(p.parent.name for p in ROOT.glob("*/__init__.py")))
def test_packages_export_what_they_have(name: str) -> None:
    module = importlib.import_module(f"mlnav.{name}")
    assert all(hasattr(module, each) for each in getattr(module, "__all__", ()))
