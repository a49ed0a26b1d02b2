"""The session's own requests, the commands in the manner of pdb, and the debug console."""
