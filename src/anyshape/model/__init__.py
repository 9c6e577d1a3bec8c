"""The model in PyTorch, which is the oracle: what it gives, what it keeps, and which sizes it cannot do."""
