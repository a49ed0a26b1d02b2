"""The session's own requests: `list`, `cast`, `compare` and their like, one module each."""
