"""Stand-ins for a booking site and a push service on loopback, for tests and `make run`; never deployed."""
