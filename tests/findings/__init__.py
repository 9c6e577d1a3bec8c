"""Small models whose sizes are written as numbers, and models that only look so: one per file, findings as comments."""
