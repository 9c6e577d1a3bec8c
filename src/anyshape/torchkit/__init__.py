"""What several subjects need of torch, and torch does not promise: private names, traces, patches, a module's state,
runs in other arithmetic, and the recorder of eager runs.
"""
