"""Ways to reach people: one contract, the class tables, one file a kind; wiring has the registry."""
