"""Worker processes: what a task does to its own, no other feels. Tasks are Python to evaluate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlnav.compute import pool
from mlnav.compute.pool import Limits, Workers, run_tasks

OS = "__import__('os')"
TIME = "__import__('time')"


def gone(pid: int) -> bool:
    """Whether a process ends within seconds; one that nobody has waited for yet has ended."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(100):
        if not status.exists() or "Z (" in status.read_text():
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
        "from mlnav.compute.pool import run_tasks\n"
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
    with Workers(1) as places:
        pids = [next(places.run([f"{OS}.getpid()"], eval)).value for _ in range(3)]
    assert len(set(pids)) == 1
    assert gone(pids[0])
