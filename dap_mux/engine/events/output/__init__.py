"""Output of many ranks: split into lines, equal lines merged."""
