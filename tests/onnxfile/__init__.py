"""Files: reading them, and holding them to what they say."""
