"""People: who they are, what they may do, and how they are reached."""
