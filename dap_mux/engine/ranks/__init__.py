"""Connections to ranks: connect, handshake, retry, leave, and what became of the process."""
