"""Where values go wrong first: what is not finite, what parts."""
