"""What a file costs at every size: the shape of each of its values, operations and memory, as formulas of its dims."""
