"""This machine: processes, files that only their user reads, session files, options."""
