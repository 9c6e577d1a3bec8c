"""What the verbs return: findings, attempts, verifications and results, as values, as text and as JSON."""
