"""Worker processes that do not outlive the process that started them."""

from __future__ import annotations

import os
import threading
import time

_POLL_S = 0.5


def end_with_parent() -> None:
    """For a worker's start: let it end when its parent does, however that ends.

    A pool's workers wait on a queue that they hold open themselves, so a parent that is killed
    leaves them waiting for ever.
    """
    parent = os.getppid()

    def watch() -> None:
        # An orphan is adopted. Polled, since a parent's death can be waited for only where
        # multiprocessing itself started the worker.
        while os.getppid() == parent:
            time.sleep(_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
