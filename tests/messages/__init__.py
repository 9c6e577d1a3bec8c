"""Models that trigger one rule each; their lines are quoted in the expected texts."""
