"""mlnav: a flight-style rover navigation planner with verified safety and learned heuristics.

The heavy parts live in submodules and are imported when they are asked for::

    from mlnav.config import Config
    from mlnav.sim import traverse
    from mlnav.terrain import load

    result = traverse(load("demo"), Config())
    print(result.outcome, result.driven_m)
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("mlnav")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
