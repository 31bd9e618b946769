"""Pure thought about stays: nights and runs, filters, openings. Standard library only."""
