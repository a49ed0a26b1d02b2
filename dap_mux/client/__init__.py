"""A small DAP client, used by one-shot commands, the console and the tests.

It knows the protocol but nothing of ranks, so it is a client like any editor.
"""

from __future__ import annotations

from dap_mux.client.client import ConnectionLost, DapClient, Json, RequestFailed, Tap

__all__ = ["ConnectionLost", "DapClient", "Json", "RequestFailed", "Tap"]
