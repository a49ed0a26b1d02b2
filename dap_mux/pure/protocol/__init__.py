"""The Debug Adapter Protocol on the wire, and no more of it than the multiplexer touches.

- `framing`: bytes to message bodies and back, with the limits that keep a hostile peer out.
- `messages`: the envelope of a message; its body stays `Raw` until one of its fields must change.
- `exchange`: ids of ranks, lines and paths in a message, replaced by others.
- `arguments`, `types`: the arguments of requests, DAP's and our own; their types say which fields
  are exchanged. `handle_fields` says it of responses and events. `validation` checks arguments.
- `rank_messages`: what the engine reads of ranks' events and responses.

Everything here is pure: no socket, clock or task.
"""
