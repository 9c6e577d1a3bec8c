"""Many models: each task in a process of its own with limits, on one machine or many; results as lines, compared."""
