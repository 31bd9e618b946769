"""Ways to reach people: one contract, one registry, the class tables, one file a kind."""
