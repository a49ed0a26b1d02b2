"""`evaluate` as the debug console sees it."""
