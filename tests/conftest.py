"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Machines are shared: how long an example takes says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard: who starts tests in the background may have had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
