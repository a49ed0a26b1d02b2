"""Sockets and clocks: everything around the engine that touches the world.

- `driver`: feeds inputs to the engine and carries its outputs out; the only place that does.
- `links`: connections to ranks. `listeners`: connections of clients (TCP, standard streams).
- `auth`: who may listen where, and who may connect.
- `sockets`: what every socket is set to.
"""
