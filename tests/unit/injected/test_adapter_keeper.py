"""How a rank finds out that its adapter accepts nobody: two ways to ask the kernel, one answer."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest

from dap_mux.rank.injected.attach import adapter_keeper
from tests.support.processes.waiting import until

Look = Callable[[int, int], int]
LOOKS: Final[tuple[Look, ...]] = (
    adapter_keeper.unaccepted,
    adapter_keeper._unaccepted_by_netlink,
    adapter_keeper._unaccepted_in_proc,
)
FAMILIES: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("look", LOOKS)
async def test_who_waits_to_be_accepted_is_counted(
    look: Look, family: socket.AddressFamily
) -> None:
    address = FAMILIES[family]
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((address, 0), family=family))
        port = listener.getsockname()[1]
        assert look(port, family) == 0
        for _ in range(2):
            stack.enter_context(socket.create_connection((address, port)))
        await until(lambda: look(port, family) == 2, within=5, what="both are counted")
        accepted, _ = listener.accept()
        stack.enter_context(accepted)
        assert look(port, family) == 1


async def test_where_there_is_no_netlink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some sandboxes have no such family, and some refuse the question."""
    monkeypatch.setattr(adapter_keeper, "NETLINK_SOCK_DIAG", 31)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises((OSError, struct.error)):
            adapter_keeper._unaccepted_by_netlink(port, socket.AF_INET)
        with socket.create_connection(("127.0.0.1", port)):
            counted = partial(adapter_keeper.unaccepted, port, socket.AF_INET)
            await until(counted, within=5, what="it is counted")
