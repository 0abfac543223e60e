import os
import signal
import subprocess
import sys
import time

PARENT = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import os
from mlnav.io import end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_worker_ends_when_its_parent_is_killed(tmp_path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        assert alive(worker)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60.0
    while alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(worker)
