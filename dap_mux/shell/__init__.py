"""Sockets and clocks: everything around the engine that touches the world.

- `driver`: feeds inputs to the engine and carries out its outputs; the only place that does.
- `links`: connections to ranks. `reverse_connections`: those that ranks open.
- `listeners`: connections of clients (TCP, standard streams). `tls_unix`: TLS, the unix socket.
- `auth`: decides which peers must show the token.
- `sockets`: the options that every socket gets. `liveness`: detects dead peers.
- `local_files`, `local_processes`: hashes files and watches ranks on this machine.
"""
