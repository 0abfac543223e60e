"""Comparisons of planners, until they are campaigns."""
