"""Other files of the cases: code that a model is made of, not a case itself."""
