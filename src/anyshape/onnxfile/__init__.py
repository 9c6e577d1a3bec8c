"""The artefact: one toolkit for its graph, its interface and contract, saving it and reading it back."""
