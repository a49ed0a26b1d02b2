"""Which number was the first wrong one: where, in which step, and on which rank."""
