"""The user's source: from a frame or an error to a place, from a place to an expression, and changes of its text."""
