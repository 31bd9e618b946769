"""How Sitebell is run: one invocation in a cloud, or a long-lived process on one machine; and how it logs."""
