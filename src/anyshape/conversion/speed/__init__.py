"""What makes an export fast and leaves its file as it is; all of it behind one switch, ANYSHAPE_SHORTCUTS."""
