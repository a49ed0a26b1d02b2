"""The Debug Adapter Protocol on the wire, and no more of it than the multiplexer touches.

Everything here is pure: no socket, clock or task.
"""
