"""Worker processes that do not outlive the process that started them."""

from __future__ import annotations

import os
import threading
from multiprocessing import connection, parent_process


def end_with_parent() -> None:
    """For a worker's start: let it end when its parent does, however that ends.

    A pool's workers wait on a queue that they hold open themselves, so a parent that is killed
    leaves them waiting for ever.
    """
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
