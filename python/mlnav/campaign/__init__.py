"""Monte Carlo campaigns: many runs from one definition, and what they show."""
