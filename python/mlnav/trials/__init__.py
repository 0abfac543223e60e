"""Trials: what is run, what it is recorded as, and the table of metrics."""
