"""`make` says what it installs system-wide before it does, and does not where that is refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make(tmp_path: Path, *args: str, user: int = 0) -> tuple[int, str, str]:
    """Return code, output and apt-get's calls where no compiler is found."""
    calls = tmp_path / "calls"
    for name, does in (("apt-get", f'echo "$@" >>{calls}'), ("id", f"echo {user}")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    done = subprocess.run(
        ["make", "-C", ROOT, "CXX=no-such-compiler", *args, "system-build"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, calls.read_text() if calls.exists() else ""


def test_root_is_told_before_anything_is_installed(tmp_path: Path) -> None:
    code, said, calls = make(tmp_path)
    assert code == 0
    assert "the build needs g++: apt-get install, system-wide" in said
    assert "SYSTEM_INSTALL=no" in said
    assert calls.endswith("install -y --no-install-recommends g++\n")


@pytest.mark.parametrize(
    ("args", "user"), [(["SYSTEM_INSTALL=no"], 0), ([], 1000)], ids=["refused", "no root"]
)
def test_nothing_is_installed_unasked(tmp_path: Path, args: list[str], user: int) -> None:
    code, said, calls = make(tmp_path, *args, user=user)
    assert code != 0
    assert "missing on this system, please install (Debian and Ubuntu names): g++" in said
    assert calls == ""
