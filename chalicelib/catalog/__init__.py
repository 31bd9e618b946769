"""Campgrounds: imported from the RIDB export, searched, and looked up on demand."""
