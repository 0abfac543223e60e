"""Worker processes: what a task does to its own, no other feels. Tasks are Python to evaluate."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from mlnav.compute import Limits, WorkerError, pool, results, run_recorded, run_tasks
from mlnav.compute.pool import Workers
from mlnav.io import read_jsonl

OS = "__import__('os')"
TIME = "__import__('time')"


def gone(pid: int) -> bool:
    """Whether a process ends within seconds; one that nobody has waited for yet has ended."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(100):
        try:
            if "Z (" in status.read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def ended(tasks, **options):
    return {e.task: e for e in run_tasks(tasks, eval, **options)}


def test_results_come_from_other_processes_of_one_thread() -> None:
    tasks = [f"{i}, {OS}.getpid(), {OS}.environ['OMP_NUM_THREADS']" for i in range(6)]
    found = ended(tasks, workers=2)
    assert [found[t].value[0] for t in tasks] == list(range(6))
    pids = {e.value[1] for e in found.values()}
    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert {e.value[2] for e in found.values()} == {"1"}


@pytest.mark.parametrize("workers", [1, 3])
def test_what_a_task_does_to_its_process_costs_that_task(workers: int) -> None:
    crash = f"{OS}._exit(3)"
    fault = f"{OS}.kill({OS}.getpid(), 11)"
    hang = f"{TIME}.sleep(600)"
    hungry = "len(bytearray(20_000_000_000))"
    wrong = "1 / 0"
    fine = [f"{i} * {i}" for i in range(5)]
    tasks = [crash, fine[0], fault, fine[1], hang, fine[2], hungry, wrong, *fine[3:]]
    found = ended(tasks, workers=workers, limits=Limits(wall_s=2.0, memory_mb=6000, attempts=1))
    assert set(found) == set(tasks)
    assert [found[t].value for t in fine] == [0, 1, 4, 9, 16]
    assert isinstance(found[wrong].error, ZeroDivisionError)
    kinds = {t: found[t].loss.kind for t in (crash, fault, hang, hungry)}
    assert kinds == {crash: "crashed", fault: "crashed", hang: "hung", hungry: "out_of_memory"}


def test_a_crash_that_does_not_come_again_costs_nothing(tmp_path) -> None:
    flag = tmp_path / "been here"
    task = (
        f"'well' if {OS}.path.exists({str(flag)!r}) else (open({str(flag)!r}, 'w'), {OS}._exit(1))"
    )
    assert ended([task])[task].value == "well"
    count = tmp_path / "count"
    task = f"(open({str(count)!r}, 'a').write('x'), {OS}._exit(1))"
    assert str(ended([task], limits=Limits(attempts=3))[task].loss).startswith("crashed 3 times")


def test_closing_ends_the_processes() -> None:
    tasks = [f"{OS}.getpid()", *[f"{TIME}.sleep(600) or {i}" for i in range(3)]]
    run = run_tasks(tasks, eval, 2)
    pid = next(run).value
    run.close()
    assert gone(pid)


def test_workers_end_with_a_parent_that_is_killed(tmp_path) -> None:
    tasks = [f"{OS}.getpid()", f"{TIME}.sleep(600)"]
    script = (
        "from mlnav.compute import run_tasks\n"
        f"for e in run_tasks({tasks}, eval): print(e.value, flush=True)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(script)
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(worker)


def test_tasks_are_asked_for_as_workers_get_free() -> None:
    seen: list[int] = []

    def tasks():
        yield from ("1", "2", "3")
        while len(seen) < 3:
            yield None  # more is to come, but not before these have ended
        yield "4"

    for e in run_tasks(tasks(), eval, workers=2):
        seen.append(e.value)
    assert sorted(seen) == [1, 2, 3, 4]
    assert seen[-1] == 4


def test_a_group_stays_with_a_worker_unless_another_is_idle() -> None:
    first, second = object(), object()
    waiting = pool._Waiting(["a1", "a2", "a3", "b1", "b2"], lambda t: t[0], [first, second])
    assert waiting.take(first) == ("a1", 1)
    assert waiting.take(second) == ("b1", 1)
    assert waiting.take(second) == ("b2", 1)
    waiting.again(first, "a1", 2)
    assert waiting.take(first) == ("a1", 2)
    assert waiting.take(second) == ("a2", 1)  # has nothing of its own left
    assert waiting.take(first) == ("a3", 1)
    assert waiting.take(first) is None


def test_places_keep_their_processes_between_tasks() -> None:
    with contextlib.closing(Workers(1)) as places:
        pids = [next(places.run([f"{OS}.getpid()"], eval)).value for _ in range(3)]
    assert len(set(pids)) == 1
    assert gone(pids[0])


def test_no_workers_is_this_process_one_task_after_the_other() -> None:
    tasks = [f"{OS}.getpid()", "1 / 0", "3", None, "never"]
    first, second, third = run_tasks(tasks, eval, workers=0)
    assert first.value == os.getpid()
    assert isinstance(second.error, ZeroDivisionError)
    assert third.value == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_results_come_in_the_order_of_the_tasks(workers: int) -> None:
    assert list(results([f"{TIME}.sleep(0.3) or 1", "2", "3"], eval, workers)) == [1, 2, 3]
    assert list(results([], eval, workers)) == []
    with pytest.raises(ZeroDivisionError):
        list(results(["1", "1 / 0"], eval, workers))


def test_results_end_with_a_process_that_dies() -> None:
    with pytest.raises(WorkerError, match="crashed 2 times"):
        list(results([f"{OS}._exit(3)"], eval, 1))


class FussyError(Exception):
    """Pickles, and cannot be made again from that."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


class Unmade:
    """Pickles, and cannot be made again from that."""

    def __reduce__(self):
        return int, ("x",)


def fussy(task: str) -> object:
    if task == "raises":
        raise FussyError("bogie", "bent")
    return Unmade() if task == "unmade" else (lambda: 1) if task == "function" else task


def test_what_cannot_be_pickled_costs_that_task_and_says_so() -> None:
    unsent = threading.Lock()
    tasks = ["raises", "unmade", "function", unsent, "fine"]
    found = {e.task: e for e in run_tasks(tasks, fussy, 1, Limits(attempts=1))}
    assert "FussyError: bogie: bent" in str(found["raises"].error)
    assert isinstance(found["unmade"].error, ValueError)
    assert "pickle" in str(found["function"].error)
    assert "pickle" in str(found[unsent].error)
    assert found["fine"].value == "fine"


def test_an_error_says_where_it_was_raised() -> None:
    (ended,) = run_tasks(["raises"], raises_deep_down)
    assert isinstance(ended.error, ZeroDivisionError)
    assert "raises_deep_down" in "".join(ended.error.__notes__)


def raises_deep_down(_: str) -> float:
    return 1 / 0


def killed_while_it_sends(_: str) -> bytes:
    def send_half(connection: Connection, data: bytes) -> None:
        os.write(connection.fileno(), data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = send_half
    return bytes(100_000)


def test_a_process_that_is_killed_while_it_sends_costs_that_task() -> None:
    found = list(run_tasks(["x"], killed_while_it_sends, limits=Limits(attempts=1)))
    assert found[0].loss.kind == "crashed"


def square(task: int) -> dict[str, int]:
    if task < 0:
        raise ValueError("negative")
    return {"task": task, "square": task * task}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_study_is_taken_up_where_it_ended(tmp_path, workers: int) -> None:
    path = tmp_path / "records.jsonl"
    told: list[tuple[int, object]] = []

    def study(*tasks: int) -> list[dict[str, int]]:
        return run_recorded(
            {(t,): t for t in tasks}, square, path, lambda r: (r["task"],), workers=workers,
            progress=lambda done, record: told.append((done, record and record["task"])),
        )  # fmt: skip

    study(1)
    with pytest.raises(ValueError, match="negative"):
        study(1, -1)
    with open(path, "a") as file:
        file.write('{"task": 2')  # torn
    told.clear()
    records = study(3, 1, 2)
    assert [r["square"] for r in records] == [9, 1, 4]
    assert sorted(r["task"] for r in read_jsonl(path)) == [1, 2, 3]
    assert told[0] == (1, None)
    assert sorted(told[1:]) in ([(2, 2), (3, 3)], [(2, 3), (3, 2)])
    told.clear()
    assert study(3, 1, 2) == records
    assert told == [(3, None)]
