"""The command line. Results go to standard output, everything else to standard error."""

from mlnav.cli.main import app

__all__ = ["app"]
