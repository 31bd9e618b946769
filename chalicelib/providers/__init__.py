"""Booking sites: one contract, one registry, one file a family."""
