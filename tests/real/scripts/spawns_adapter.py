"""A rank that stands still in the midst of starting its adapter again.

`spawns_adapter.py PORT PHASE`: `unheard` (it has not taken what the adapter says), `heard` (it has
not connected) or `silent` (it has, and says nothing). It prints PHASE once it stands there.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from importlib import import_module
from pathlib import Path

from dap_mux.rank.injected.attach import adapter_keeper, adapter_program


def main(port: str, phase: str) -> None:
    import_module("debugpy.server.api")  # it brings pydevd
    keeper = object.__new__(adapter_keeper.Keeper)
    keeper._arguments = {"--host": "127.0.0.1", "--port": port, "--server-access-token": "t" * 64}
    keeper._python = sys.executable
    keeper._program = Path(adapter_program.__file__).read_text("utf-8")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        keeper._spawn(listener.getsockname()[1])
        if phase == "unheard":
            stand(phase)
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as file:
            told = json.loads(file.read())
        if phase == "heard":
            stand(phase)
        with socket.create_connection((told["server"]["host"], told["server"]["port"])):
            stand(phase)


def stand(phase: str) -> None:
    print(phase, flush=True)
    while True:
        time.sleep(1)


main(*sys.argv[1:])
