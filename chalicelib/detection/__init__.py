"""Detection: what is due, at what pace, what was found, and what is to be told."""
