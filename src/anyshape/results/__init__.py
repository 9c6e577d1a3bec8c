"""What anyshape says: findings, attempts, checks and results as values, as text and as JSON, and the pages of rules."""
