"""The command line: words in, words or JSON out. Use cases are imported when they are needed."""
