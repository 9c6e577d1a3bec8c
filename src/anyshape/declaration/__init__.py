"""What may vary: targets, calls as named leaves, dims in all their forms, and calls of any size."""
