"""Events of ranks, and of the session itself."""
