"""An audit hook for one event that runs no Python at all the others.

Python's audit hooks are called for every import, open file and `sys.settrace`. While one written
in Python runs, other threads may run too, and CPython up to 3.11 fails where that happens inside
`sys.settrace`: the next thread that calls it gets "Cannot install a trace function while another
trace function is being installed" (https://github.com/python/cpython/issues/98257), in the user's
program or in debugpy. A look into a dict stays in C.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def on_audit_event(event: str, call: Callable[[], None]) -> None:
    """Call `call` at every audit event of this name, for as long as the process lives.

    Its frame's caller is `_Key.__eq__`, whose caller is what raised the event.
    """
    watched: dict[Any, Any] = {_Key(event, call): None}
    sys.addaudithook(watched.get)


class _Key:
    """A dict compares it with a text of the same hash, the event's own name, and no other."""

    def __init__(self, event: str, call: Callable[[], None]) -> None:
        self._event = event
        self._call = call

    def __hash__(self) -> int:
        return hash(self._event)

    def __eq__(self, other: object) -> bool:
        if other == self._event:
            self._call()
        return False
