"""The artefact: saving, its contract, reading it back."""
