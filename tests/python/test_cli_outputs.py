"""What commands write, where it cannot be written as it should."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlnav.io import JsonlWriter, read_jsonl, whole_file
from mlnav.terrain import Terrain, write_geotiff

HELP_OF_ALL = """
import sys
from typer.main import get_command
from mlnav.cli import app

def commands(command, path):
    yield path
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, [*path, name])

known = list(commands(get_command(app), []))
for path in known:
    try:
        app([*path, "--help"])
    except SystemExit as end:
        if end.code:
            sys.exit(f"{path}: {end.code}")
print(len(known), "commands")
"""

LIMITED = """
import resource, sys
from mlnav.cli import app

import mlnav.viz, mlnav.risk  # so that what they cache is there
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
app(sys.argv[2:])
"""

ENDS = ("--start=4,8", "--goal=12,8")


def program(*args: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`mlnav` as its own process; `LC_ALL` and `PYTHONIOENCODING` are what matters here."""
    return subprocess.run(
        [sys.executable, "-c", "from mlnav.cli import app; app()", *map(str, args)],
        capture_output=True,
        env=os.environ | environment,
        check=False,
    )


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENCODINGS = ({"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, C_LOCALE)


@pytest.fixture(scope="module")
def level(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("maps") / "level.tif"
    write_geotiff(path, Terrain(np.zeros((160, 240)), 0.1, (0.05, 0.05), name="level 高"))
    return path


# -------------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("environment", ENCODINGS, ids=("ascii", "latin-1", "C"))
def test_help_of_every_command_in_every_encoding(environment) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP_OF_ALL],
        capture_output=True,
        env=os.environ | {"COLUMNS": "60"} | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert int(done.stdout.split()[-2]) > 25
    assert b"Exit codes" in done.stdout
    if environment["PYTHONIOENCODING" if len(environment) == 1 else "LC_ALL"] != "latin-1":
        assert done.stdout.isascii()


@pytest.mark.parametrize("environment", ENCODINGS, ids=("ascii", "latin-1", "C"))
def test_output_errors_and_json_in_every_encoding(level: Path, tmp_path: Path, environment) -> None:
    told = program("terrain", "info", level, **environment)
    assert told.returncode == 0, told.stderr
    told = program("terrain", "info", level, "--json", **environment)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["name"] == "level 高"
    run = program(
        "traverse", "-t", level, *ENDS, "--out", tmp_path / "ö", "--no-picture", "--json",
        **environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["terrain"] == "level 高"
    named = tmp_path / "höhe 高.tif"
    named.write_bytes(level.read_bytes())
    told = program("terrain", "info", named, **environment)
    if environment is C_LOCALE:  # Python and GDAL do not agree on the name
        assert told.returncode == 2
        assert b"its name cannot be read in this locale" in told.stderr
    else:
        assert told.returncode == 0, told.stderr
    refused = program("plan", "-t", level, "--start=-5°,0", **environment)
    assert refused.returncode == 2
    assert b"is not X,Y in metres" in refused.stderr
    for words in (("doctor",), ("config", "show")):
        assert program(*words, **environment).returncode == 0


# ------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize(
    ("args", "lost"),
    [
        (("traverse", *ENDS, "--no-picture"), "cycles.jsonl"),
        (("traverse", *ENDS), "traverse.png"),
        (("plan", *ENDS), "plan.png"),
        (("ace", "--bins", "4", "--checker", "fixed_box"), "ace.png"),
        (("ace", "explain", "--at=12,8,0"), "explain.png"),
        (("terrain", "show"), "map.png"),
        (("terrain", "make"), "map.tif"),
    ],
)
def test_a_full_disk_is_told_with_the_path(level: Path, tmp_path: Path, args, lost: str) -> None:
    single = args[0] == "terrain"
    out = tmp_path / lost if single else tmp_path
    words = [*args[:2], "demo"] if args[1] == "make" else [*args, *(() if single else ("-t",))]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "4000" if lost.endswith(".jsonl") else "12000", *words,
         *(() if args[1] == "make" else (level,)), "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert str(tmp_path / lost) in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    written = {path.name for path in tmp_path.iterdir()}
    assert not any(name.startswith(".") for name in written)
    if lost.endswith(".jsonl"):
        content = (tmp_path / lost).read_bytes()
        assert content.endswith(b"\n")
        assert len(list(read_jsonl(tmp_path / lost))) >= 1
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
