"""Sockets and clocks: everything around the engine that touches the world."""
