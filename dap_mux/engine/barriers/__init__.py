"""Ranks that wait for each other at a breakpoint, and who is missing."""
