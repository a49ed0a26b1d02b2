"""The Debug Adapter Protocol on the wire, and no more of it than the multiplexer touches.

- `framing`: bytes to message bodies and back, with the limits that keep a hostile peer out.
- `messages`: the envelope of a message; its body stays `Raw` until one of its fields must change.
- `handle_fields`: which field of which message carries an id that belongs to a rank.

Everything here is pure: no socket, clock or task.
"""
