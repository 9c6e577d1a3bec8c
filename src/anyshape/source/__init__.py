"""The user's source: places and stacks, the expression at a place, edits, and code that is changed while it lives."""
