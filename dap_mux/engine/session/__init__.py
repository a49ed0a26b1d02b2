"""What becomes of what ranks do and print; lists and groups of ranks; the end of the session."""
