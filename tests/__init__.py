"""Claims about Sitebell, each with its proof."""
