"""Which axes vary, when nobody has said so: found from several calls, or from one call by asking the model."""
