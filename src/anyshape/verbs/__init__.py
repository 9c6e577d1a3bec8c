"""One file per verb, the first to read; `export.py` shows its stages in order."""
