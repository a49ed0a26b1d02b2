"""Sockets and clocks: everything around the engine that touches the world.

- `driver`: feeds inputs to the engine and carries its outputs out; the only place that does.
- `links`: connections to ranks; `dial_in`: those that ranks have made.
- `listeners`: connections of clients (TCP, standard streams); `doors`: TLS and the unix socket.
- `auth`: who is at the other end, and has to show the token.
- `sockets`: what every socket is set to.
"""
