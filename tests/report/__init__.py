"""Results and findings as people and machines read them."""
