import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mlnav.io import JsonlWriter, RecordError, read_jsonl, write_json
from mlnav.io.records import plain, to_json


def test_records_come_back(tmp_path) -> None:
    path = tmp_path / "new" / "r.jsonl"
    with JsonlWriter(path) as writer:
        writer.write({"a": 1, "grad": "30°"})
        writer.write({"b": np.float32(0.5), "c": np.arange(3), "d": (1, math.nan), "e": np.True_})
    assert list(read_jsonl(path)) == [
        {"a": 1, "grad": "30°"},
        {"b": 0.5, "c": [0, 1, 2], "d": [1, None], "e": True},
    ]


def test_each_record_is_there_at_once(tmp_path) -> None:
    with JsonlWriter(tmp_path / "r.jsonl") as writer:
        for i in range(3):
            writer.write({"i": i})
            assert len(list(read_jsonl(tmp_path / "r.jsonl"))) == i + 1


def test_a_torn_last_line_is_dropped_and_cut_off(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"i": 0}\n{"i": 1}\n{"i":')
    assert [r["i"] for r in read_jsonl(path)] == [0, 1]
    with JsonlWriter(path, append=True) as writer:
        writer.write({"i": 2})
    assert [r["i"] for r in read_jsonl(path)] == [0, 1, 2]


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b"\n"])
def test_damage_before_the_end_is_named(tmp_path, line: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"i": 0}\n' + line + b'{"i": 1}\n')
    with pytest.raises(RecordError, match="line 2"):
        list(read_jsonl(path))


def test_without_append_a_file_starts_empty(tmp_path) -> None:
    for i in range(2):
        with JsonlWriter(tmp_path / "r.jsonl") as writer:
            writer.write({"i": i})
    assert [r["i"] for r in read_jsonl(tmp_path / "r.jsonl")] == [1]


def test_json_is_strict() -> None:
    assert json.loads(to_json({"x": [math.inf, -math.inf, np.float64("nan")]})) == {"x": [None] * 3}
    assert plain({1: np.int64(2)}) == {"1": 2}
    with pytest.raises(TypeError):
        to_json({"x": object()})


def test_documents_are_whole_or_absent(tmp_path) -> None:
    path = tmp_path / "d" / "s.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in path.parent.iterdir()] == ["s.json"]


def test_an_interrupt_leaves_whole_lines(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    code = (
        "import signal, sys; from mlnav.io import JsonlWriter\n"
        # Shells start background jobs with interrupts ignored, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with JsonlWriter(sys.argv[1]) as w:\n"
        # Bounded: should the interrupt be lost, a full disk must not be the consequence.
        "    for i in range(10_000): w.write({'i': i, 'pad': 'x' * 5000})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.DEVNULL)
    while not path.exists() or path.stat().st_size < 50_000:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    process.wait()
    content = path.read_bytes()
    assert content.endswith(b"\n")
    assert [json.loads(line)["i"] for line in content.splitlines()] == list(
        range(content.count(b"\n"))
    )
