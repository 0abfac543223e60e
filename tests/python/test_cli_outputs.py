"""What commands write, where it cannot be written as it should."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlnav.io import JsonlWriter, read_jsonl, whole_file
from mlnav.terrain import Terrain, write_geotiff

PROGRAM = """
import json, os, resource, sys
from typer.main import get_command
from mlnav.cli import app

def commands(command, path):
    yield path
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, [*path, name])

wanted = json.loads(sys.argv[2])
if any("limit" in one for one in wanted):
    import mlnav.viz, mlnav.risk  # so that what they cache is there
if not wanted:
    wanted = [{"args": [*path, "--help"]} for path in commands(get_command(app), [])]
shown = os.dup(1)
told = []
for i, one in enumerate(wanted):
    for stream, name in enumerate(("stdout", "stderr"), 1):
        os.dup2(os.open(f"{sys.argv[1]}/{name}-{i}", os.O_WRONLY | os.O_CREAT), stream)
    limit = one.get("limit", resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    code = 0
    try:
        app(one["args"])
    except SystemExit as end:
        code = end.code or 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    sys.stdout.flush()
    told.append(code)
os.write(shown, json.dumps(told).encode())
"""
"""Runs commands one after the other, as importing everything for each would take minutes."""

ENDS = ("--start=4,8", "--goal=12,8")


@dataclass(frozen=True)
class Told:
    """What a command wrote, and how it ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def program(
    folder: Path, wanted: list[dict[str, Any]], environment: Mapping[str, str] = {}
) -> list[Told]:
    """Commands in a process of their own; none: the help of all there are.

    Args:
        folder: for what they write.
        wanted: of each its `args`, and the `limit` of the files that it writes [bytes].
        environment: `LC_ALL` and `PYTHONIOENCODING` are what matters here.
    """
    folder.mkdir()
    # Not escaped, so that a name in it is decoded as any in a command line.
    told = json.dumps(
        [one | {"args": [*map(str, one["args"])]} for one in wanted], ensure_ascii=False
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder, told],
        capture_output=True,
        env=os.environ | {"COLUMNS": "60"} | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return [
        Told(code, *((folder / f"{name}-{i}").read_bytes() for name in ("stdout", "stderr")))
        for i, code in enumerate(json.loads(done.stdout))
    ]


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENCODINGS = ({"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, C_LOCALE)


@pytest.fixture(scope="module")
def level(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("maps") / "level.tif"
    write_geotiff(path, Terrain(np.zeros((160, 240)), 0.1, (0.05, 0.05), name="level 高"))
    return path


# -------------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("environment", ENCODINGS, ids=("ascii", "latin-1", "C"))
def test_help_of_every_command_in_every_encoding(tmp_path: Path, environment) -> None:
    helped = program(tmp_path / "told", [], environment)
    assert len(helped) > 25
    for told in helped:
        assert told.returncode == 0, told.stderr
        if environment is not ENCODINGS[1]:
            assert told.stdout.isascii()
    assert b"Exit codes" in helped[0].stdout


@pytest.mark.parametrize("environment", ENCODINGS, ids=("ascii", "latin-1", "C"))
def test_output_errors_and_json_in_every_encoding(level: Path, tmp_path: Path, environment) -> None:
    named = tmp_path / "höhe 高.tif"
    named.write_bytes(level.read_bytes())
    info, as_json, run, other, refused, *more = program(
        tmp_path / "told",
        [
            {"args": args}
            for args in (
                ("terrain", "info", level),
                ("terrain", "info", level, "--json"),
                ("traverse", "-t", level, *ENDS, "--out", tmp_path / "ö", "--no-picture", "--json"),
                ("terrain", "info", named),
                ("plan", "-t", level, "--start=-5°,0"),
                ("doctor",),
                ("config", "show"),
            )
        ],
        environment,
    )
    assert info.returncode == 0, info.stderr
    assert as_json.returncode == 0, as_json.stderr
    assert json.loads(as_json.stdout)["name"] == "level 高"
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["terrain"] == "level 高"
    if environment is C_LOCALE:  # Python and GDAL do not agree on the name
        assert other.returncode == 2
        assert b"its name cannot be read in this locale" in other.stderr
    else:
        assert other.returncode == 0, other.stderr
    assert refused.returncode == 2
    assert b"is not X,Y in metres" in refused.stderr
    assert [told.returncode for told in more] == [0, 0]


# ------------------------------------------------------------------------------------- full disks


def test_a_full_disk_is_told_with_the_path(level: Path, tmp_path: Path) -> None:
    on_map = ("-t", level, "--out")
    cases = (
        ("cycles.jsonl", ("traverse", *ENDS, "--no-picture", *on_map)),
        ("traverse.png", ("traverse", *ENDS, *on_map)),
        ("plan.png", ("plan", *ENDS, *on_map)),
        ("ace.png", ("ace", "--bins", "4", "--checker", "fixed_box", *on_map)),
        ("explain.png", ("ace", "explain", "--at=12,8,0", *on_map)),
        ("map.png", ("terrain", "show", level, "--out")),
        ("map.tif", ("terrain", "make", "demo", "--out")),
    )
    wanted = []
    for i, (lost, args) in enumerate(cases):
        out = tmp_path / str(i)
        out.mkdir()
        limit = 4000 if lost.endswith(".jsonl") else 12000
        last = out / lost if args[0] == "terrain" else out
        wanted.append({"args": (*args, last), "limit": limit})
    for i, told in enumerate(program(tmp_path / "told", wanted)):
        lost, out = cases[i][0], tmp_path / str(i)
        stderr = told.stderr.decode()
        assert told.returncode == 2, stderr
        assert str(out / lost) in stderr
        assert "File too large" in stderr
        assert "Traceback" not in stderr
        written = {path.name for path in out.iterdir()}
        assert not any(name.startswith(".") for name in written)
        if lost.endswith(".jsonl"):
            assert (out / lost).read_bytes().endswith(b"\n")
            assert len(list(read_jsonl(out / lost))) >= 1
        else:
            assert lost not in written


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [("--help",), ("config", "show"), ("doctor", "--json")])
def test_output_that_cannot_be_written_is_told(words) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from mlnav.cli import app; app()", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"error: standard output: No space left on device\n"


def test_a_whole_file_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with whole_file(path) as temporary:
        temporary.write_text("old")
    with pytest.raises(OSError, match="No space") as caught, whole_file(path) as temporary:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(path)
    with pytest.raises(OSError, match=r"other\.txt"), whole_file(path):
        (tmp_path / "other.txt").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_a_record_that_does_not_fit_leaves_the_ones_before(tmp_path: Path) -> None:
    code = """
import resource, sys
from mlnav.io import JsonlWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
with JsonlWriter(sys.argv[1]) as writer:
    writer.write({"i": 0})
    try:
        writer.write({"i": 1, "long": "x" * 200})
    except OSError as fault:
        print(fault.filename)
    writer.write({"i": 2})
"""
    path = tmp_path / "r.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.strip() == str(path)
    assert [record["i"] for record in read_jsonl(path)] == [0, 2]
    with JsonlWriter(path, append=True) as writer:
        writer.write({"i": 3})
    assert [record["i"] for record in read_jsonl(path)] == [0, 2, 3]


# -------------------------------------------------------------------------------- what others say


@pytest.mark.bullet
def test_pybullet_prints_no_banner() -> None:
    pytest.importorskip("pybullet")
    code = (
        "import os; from mlnav.sim.bullet_rig import import_pybullet;"
        "library = import_pybullet(); assert library is import_pybullet();"
        "os.write(1, b'out'); os.write(2, b'err')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"out", b"err")


@pytest.mark.bullet
def test_nothing_else_imports_pybullet() -> None:
    package = Path(__file__).parents[2] / "python" / "mlnav"
    found = [
        path.name
        for path in package.rglob("*.py")
        if "import pybullet" in (text := path.read_text()) or '_module("pybullet")' in text
    ]
    assert found == ["bullet_rig.py"]
