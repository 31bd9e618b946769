"""HTTP at the edge: one file a resource."""
