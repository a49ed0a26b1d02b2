"""Breakpoints of all clients: stored once, merged for each rank, replayed to late ranks."""
