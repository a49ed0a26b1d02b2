"""What torch's key-value stores answer to the program: written down, and answered in a replay.

Calls by torch itself are its own affair: a replay has none of its rendezvous.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

METHODS = (
    *("add", "append", "barrier", "check", "compare_set", "delete_key", "get", "list_keys"),
    *("multi_get", "multi_set", "num_keys", "queue_len", "queue_pop", "queue_push", "set", "wait"),
)
BYTES, ERROR = "bytes", "error"
MAX_KEY = 200
Json = dict[str, Any]


def take(write: Callable[[Json], object]) -> None:
    """Have what the program asks of a store written down, with the answer."""
    store: Any = sys.modules["torch"].distributed.Store
    for name in METHODS:
        if hasattr(store, name):
            setattr(store, name, _written(name, getattr(store, name), write))
    server: Any = sys.modules["torch"].distributed.TCPStore
    server.port = property(_written("port", server.port.fget, write))


def _written(name: str, method: Any, write: Callable[[Json], object]) -> Any:
    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if not _is_the_programs(2):
            return method(self, *arguments, **named)
        said: Json = {"method": name, "key": _key(arguments, named)}
        try:
            answer = method(self, *arguments, **named)
        except RuntimeError as error:
            write({**said, "answer": {ERROR: str(error)}})
            raise
        write({**said, "answer": _told(answer)})
        return answer

    return call


class Stores:
    """Answers what the program asks, by what was `said`: `method`, `key` and `answer` of each."""

    def __init__(self, said: list[Json], parted: type[Exception]) -> None:
        self._left: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        self._parted = parted
        for each in said:
            self._left[each["method"], each["key"]].append(each.get("answer"))

    def begin(self, fake: Any) -> Any:
        """Take the stores' place; `fake`: torch's store for a group that has nobody else."""
        torch: Any = sys.modules["torch"]
        for name in METHODS:
            method = getattr(torch.distributed.Store, name, None)
            if method is not None:
                setattr(torch.distributed.Store, name, self._answered(name, method, fake))

        class Absent(fake):  # type: ignore[misc]
            """A store of which nobody is there."""

            port = property(lambda _: self._answer("port", ""))

            def __init__(self, host: Any = "", *_: Any, **named: Any) -> None:
                super().__init__()
                self.host = named.get("host_name", host)

            def clone(self) -> Any:
                """Return another way to it."""
                return self

        for name in ("TCPStore", "FileStore"):
            setattr(torch.distributed, name, Absent)

    def _answered(self, name: str, method: Any, fake: Any) -> Any:
        @wraps(method)
        def call(store: Any, *arguments: Any, **named: Any) -> Any:
            if _is_the_programs(2):
                return self._answer(name, _key(arguments, named))
            return None if isinstance(store, fake) else method(store, *arguments, **named)

        return call

    def _answer(self, name: str, key: str) -> Any:
        left = self._left[name, key]
        if not left:
            raise self._parted(f"the record has no (more) answer of a store to {name}({key})")
        answer = left.popleft()
        if isinstance(answer, dict) and ERROR in answer:
            raise RuntimeError(answer[ERROR])
        return _value(answer)


def _is_the_programs(depth: int) -> bool:
    """Whether it is not torch that calls."""
    name = sys._getframe(depth).f_globals.get("__name__", "")  # noqa: SLF001
    return name.partition(".")[0] not in ("torch", "dap_mux")


def _key(arguments: tuple[Any, ...], named: Json) -> str:
    return ", ".join(map(repr, (*arguments, *named.values())))[:MAX_KEY]


def _told(answer: Any) -> Any:
    if isinstance(answer, list):
        return [*map(_told, answer)]
    return {BYTES: bytes(answer).hex()} if isinstance(answer, (bytes, bytearray)) else answer


def _value(answer: Any) -> Any:
    if isinstance(answer, list):
        return [*map(_value, answer)]
    return bytes.fromhex(answer.get(BYTES, "")) if isinstance(answer, dict) else answer
