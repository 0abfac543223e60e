"""What holds for all tests."""

from hypothesis import settings

# Machines are shared: how long an example takes says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
