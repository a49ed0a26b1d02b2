"""Commands of `cast` in the manner of pdb: steps, breakpoints, values."""
