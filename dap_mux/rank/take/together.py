"""Ranks that are replayed beside each other: what they say to each other goes between them."""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

from dap_mux.rank.comm.operators import OPERATORS
from dap_mux.rank.comm.record import C10D
from dap_mux.rank.take.rank_file import ANY_SOURCE, SOURCE

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Sequence

    from dap_mux.rank.comm.record import Call

GLOO = "gloo"
INTERFACE = "GLOO_SOCKET_IFNAME"
PATIENCE = timedelta(days=30)
"""A debugger may hold the others."""
REACHED = "reached"
MAX_TAG = 1 << 16
Arguments = tuple[Any, ...]


class Together:
    """Groups that have only ranks of these are real ones, of gloo, and so are messages among them.

    `ranks`: numbers in the world, in order; `store`: a new file for them.
    """

    def __init__(self, ranks: Sequence[int], rank: int, world: int, store: str) -> None:
        self._ranks, self._rank, self._world = [*ranks], rank, world
        self._path = store
        self._store: Any = None
        self._messages: Any = None
        self._groups: dict[str, list[int]] = {}

    def begin(self) -> None:
        """torch.distributed is there: meet the others."""
        if len(self._ranks) < 2:
            return
        c10d: Any = sys.modules[C10D]
        torch: Any = sys.modules["torch"]
        local = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
        os.environ[INTERFACE] = local[0]
        self._store = torch.distributed.FileStore(self._path, len(self._ranks))
        size, at = len(self._ranks), self._ranks.index(self._rank)
        store = c10d.PrefixStore("messages/", self._store)
        backend = c10d.ProcessGroupGloo(store, at, size, timeout=PATIENCE)
        self._messages = c10d.ProcessGroup(store, at, size)
        kind = c10d.ProcessGroup.BackendType.GLOO
        self._messages._set_default_backend(kind)  # noqa: SLF001
        self._messages._register_backend(torch.device("cpu"), kind, backend)  # noqa: SLF001

    def group(self, name: str, ranks: list[int]) -> tuple[str, Any] | None:
        """Return the backend and the store of a new group, None where not all of it is here.

        `ranks`: numbers in the world, [] for all.
        """
        self._groups[name] = ranks = ranks or [*range(self._world)]
        whole = len(ranks) > 1 and {*ranks} <= {*self._ranks}
        return (GLOO, self._store) if whole and self._store is not None else None

    def reach(self) -> None:
        """Tell the others that this one is where it was to stop."""
        if self._store is not None:
            self._store.set(REACHED, "1")

    def is_reached(self) -> bool:
        """Whether one of the others is where it was to stop."""
        return self._store is not None and bool(self._store.check([REACHED]))

    def way(
        self, call: Call, arguments: Arguments, recorded: Callable[[], list[bytes]]
    ) -> Arguments | None:
        """Return what a call is really made with; None where the record answers it.

        `recorded`: what it received then. A message that anybody could have sent comes from whom it
        came then: the sender's number is put into `call.peer`.
        """
        ranks = self._groups.get(call.group[0], [])
        if self._store is None:
            return None
        if call.operator == ANY_SOURCE:
            parts = recorded()
            call.peer = SOURCE.unpack(parts[-1])[0] if parts else -1
        elif not OPERATORS[call.operator].is_p2p:
            return arguments if len(ranks) > 1 and {*ranks} <= {*self._ranks} else None
        peer = ranks[call.peer] if 0 <= call.peer < len(ranks) else -1
        if peer not in self._ranks:
            return None
        tag = crc32(call.group[0].encode()) % (MAX_TAG // 2) * MAX_TAG + arguments[-1] % MAX_TAG
        at = self._ranks.index(peer)
        return (arguments[0], self._messages.boxed(), at, tag)
