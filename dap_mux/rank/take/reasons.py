"""Changes in a replay's surroundings since the job, which are named where the replay parts."""

from __future__ import annotations

import os
import platform
import random
import struct
import sys
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.looks import fingerprint, unseen
from dap_mux.rank.take.data_files import changes
from dap_mux.rank.take.rank_file import digest_of
from dap_mux.rank.take.unrepeated import Unrepeated

if TYPE_CHECKING:  # a rank may have Python 3.8
    from dap_mux.rank.comm.record import Call

MAX_SHOWN = 40
FIRST = 64
"""Calls of a job that have random states each: programs seed between those."""


class Remarks:
    """What is written with a call: random states with a step's first and the job's, new files."""

    def __init__(self) -> None:
        self._count = 0
        self._step = -1
        self._files: set[str] = set()

    def on(self, call: Call) -> dict[str, Any]:
        """Return more fields of the call; {} for most."""
        said: dict[str, Any] = {}
        self._count += 1
        if call.step != self._step or self._count <= FIRST:
            self._step = call.step
            said["random_states"] = random_states()
        path = file_of(call)
        if path and path not in self._files:
            self._files.add(path)
            said["source"] = digest_of(path)
        return said


class Reasons:
    """Compares the remarks on calls with what is so now. `head`: of the file; `files`: data."""

    def __init__(self, head: dict[str, Any], files: list[dict[str, Any]]) -> None:
        self._head, self._files = head, files
        self._changed: dict[str, None] = {}
        self._random = ""
        self._first: dict[str, Any] = {}
        self.unrepeated = Unrepeated()

    def note(self, then: dict[str, Any], call: Call) -> None:
        """A call is made, at which this was written down."""
        path, states = file_of(call), then.get("random_states")
        if "source" in then and path and digest_of(path) != then["source"]:
            self._changed[os.path.abspath(path)] = None  # noqa: PTH100
        if isinstance(states, dict) and not self._random:
            now = random_states()
            others = [
                name for name in now if self._drew(name, states) and now[name] != states[name]
            ]
            if others:
                names = " and ".join(others)
                self._random = (
                    f"the random state of {names} is another from call {then['order']} on"
                )

    def _drew(self, name: str, states: dict[str, Any]) -> bool:
        """Whether the rank has used it by then: numpy's, unseeded, is another in each process."""
        return bool(states.get(name) and self._first.setdefault(name, states[name]) != states[name])

    def known(self) -> str:
        """Return them as a clause each, "" for none."""
        changed = {**self._changed}
        if digest_of(sys.argv[0]) != self._head["digest"]:
            changed[os.path.abspath(sys.argv[0])] = None  # noqa: PTH100
        said = [f"{path} is not the file that was run then" for path in changed]
        said += [*changes(self._files), *([self._random] if self._random else [])]
        now = {"torch": getattr(sys.modules.get("torch"), "__version__", "")}
        now["python"] = platform.python_version()
        for name, version in now.items():
            then = str(self._head.get(name, "")).partition(" ")[0][:MAX_SHOWN]
            if then and then != str(version):
                said.append(f"{name} is {version}, it was {then}")
        said += self.unrepeated.known()
        return "".join(f"; {each}" for each in said)


def file_of(call: Call) -> str:
    """Return the file of the user's line that makes a call, "" for none."""
    return call.place.rpartition(" ")[0].rpartition(":")[0]


def random_states() -> dict[str, str]:
    """Return a hash of the state of each source of random numbers that a program has seeded.

    0.1 ms (measured), at most once a step but at the beginning.
    """
    numbers = random.getstate()[1]
    found = {"Python": _hash(struct.pack(f"!{len(numbers)}Q", *numbers))}
    numpy: Any = sys.modules.get("numpy.random")
    with suppress(AttributeError, KeyError, TypeError, ValueError):  # a generator of its own
        found["numpy"] = _hash(numpy.get_state(legacy=False)["state"]["key"].tobytes())
    if "torch" in sys.modules:
        with unseen() as torch:
            found["torch"] = fingerprint(torch.default_generator.get_state())
    return found


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
