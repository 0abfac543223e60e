"""Measurements beside campaigns: soundness of checkers, physics, cost, instructions."""
