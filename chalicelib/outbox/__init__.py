"""The outbox: what is to be told, and every step of telling it once and only while it is true."""
