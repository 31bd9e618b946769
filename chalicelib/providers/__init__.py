"""Booking sites: one contract, one file a family; wiring has the registry."""
