"""The composition root: engine, sockets, ranks and session file put together.

A command imports the module that it needs: an adapter that an editor waits for starts no ranks yet.
"""
