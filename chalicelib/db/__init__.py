"""Storage: every table, the two dialects, and the one way to open a transaction."""
