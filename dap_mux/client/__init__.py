"""A small DAP client, used by one-shot commands, the console and the tests.

- `failures`: the errors that it raises.
- `wire`: messages over streams.
- `client`: `DapClient`: requests and their responses, events with a history.

It knows the protocol but nothing of ranks, so it is a client like any editor.
"""

from __future__ import annotations

from dap_mux.client.client import DapClient
from dap_mux.client.failures import ConnectionLost, RequestFailed
from dap_mux.client.wire import Json, Tap

__all__ = ["ConnectionLost", "DapClient", "Json", "RequestFailed", "Tap"]
