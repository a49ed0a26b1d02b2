"""Sockets and clocks: everything around the engine that touches the world.

- `driver`: feeds inputs to the engine and carries out its outputs; the only place that does.
- `links`: connections to ranks. `reverse_connections`: those that ranks open.
- `listeners`: connections of clients (TCP, standard streams).
- `auth`: decides which peers must show the token.
- `sockets`: the options that every socket gets, dead peers, TLS and the unix socket.
- `local_machine`: watches processes of ranks and reads files of clients on this machine.
"""
