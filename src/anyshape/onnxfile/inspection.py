def inspect(*a, **k): raise NotImplementedError
