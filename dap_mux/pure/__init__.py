"""Data and functions without state, clock, chance, file, network or task."""
