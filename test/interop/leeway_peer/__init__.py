"""A small Leeway peer in Python, written from the pages in spec/ and sharing no code with the other two implementations."""
