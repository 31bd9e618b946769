"""Scans: what people ask to be told about. `request` says what can be asked, `changes` writes, `views` reads."""
