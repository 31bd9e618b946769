"""Benchmarks, each beside the bare work that nobody can avoid, in one run. `README.md` says how to read them."""
