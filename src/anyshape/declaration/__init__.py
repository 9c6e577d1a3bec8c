"""What may vary, and calls of any size."""
