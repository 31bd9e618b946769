"""What API and panel share at the edge: what came, who is calling, and whether a browser was made to send it."""
