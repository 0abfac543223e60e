"""Measurements other than campaigns: soundness of checkers, physics, cost, instructions."""
