"""What anyshape says: findings, attempts, checks and results as values, text, HTML and JSON, and the pages of rules."""
