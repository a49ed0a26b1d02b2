"""Runs a program of ours on the machines of a job that nobody has prepared, on all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, runtime_checkable

import anyio

from dap_mux.cluster.tunnel import running_child
from dap_mux.pure.errors import DapMuxError, NothingToConnect
from dap_mux.pure.printable import one_line

K = TypeVar("K")
T = TypeVar("T")
ANSWER_WITHIN_S: Final = 8.0
SIDE_BY_SIDE: Final = 64
MAX_ANSWER_BYTES: Final = 32 << 20
MAX_ERROR_BYTES: Final = 64 << 10
MAX_REASON: Final = 200
# The length is said beforehand: not every way to a pod passes on that the input has ended.
_SHELL: Final = (
    'p=$(command -v python3 || command -v python) || {{ echo "no Python is in PATH" >&2; exit 127; '
    '}}; exec "$p" -I -S -c "import sys; exec(sys.stdin.buffer.read({size}))"'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Machine:
    """A host, a node of a job, or a pod; `reach` returns the command that runs a script there.

    `only`: the variables of a launcher that tell the job's ranks from others. `everybody`: ranks of
    other users belong to it. `right`: what gives the right to read a process's memory. `down`: why
    nothing can run there now.
    """

    name: str
    reach: Callable[[str], Sequence[str]]
    only: Mapping[str, str] = field(default_factory=dict)
    everybody: bool = False
    right: str = ""
    down: str = ""


@runtime_checkable
class OpenSource(Protocol):
    """A `Source` on whose machines a program can be run."""

    @property
    def names_ports(self) -> bool:
        """Whether the endpoint says where ranks listen."""

    async def machines(self) -> Sequence[Machine]:
        """Return the machines. Raises `DapMuxError` if there are none."""


async def run_on(
    machines: Sequence[Machine], program_for: Callable[[Machine], bytes]
) -> dict[Machine, bytes | DapMuxError]:
    """Return what each of them has printed, or why there is nothing."""
    return await side_by_side(machines, lambda one: _run(one, program_for(one)), SIDE_BY_SIDE)


async def side_by_side(
    asked: Sequence[K], ask: Callable[[K], Awaitable[T]], most: int
) -> dict[K, T | DapMuxError]:
    """Ask so many at a time; return each one's answer, or why there is none."""
    answers: dict[K, T | DapMuxError] = {}
    limiter = anyio.CapacityLimiter(most)

    async def ask_one(one: K) -> None:
        async with limiter:
            try:
                answers[one] = await ask(one)
            except DapMuxError as error:
                answers[one] = error

    async with anyio.create_task_group() as tasks:
        for one in asked:
            tasks.start_soon(ask_one, one)
    return {one: answers[one] for one in asked}


async def _run(machine: Machine, program: bytes) -> bytes:
    """Return what its Python prints for a program. Raises `NothingToConnect`."""
    if machine.down:
        raise NothingToConnect(machine.down)
    words = machine.reach(_SHELL.format(size=len(program)))
    async with running_child(words, with_input=True) as child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        out, err = bytearray(), bytearray()
        with anyio.move_on_after(ANSWER_WITHIN_S) as patience:
            with suppress(OSError, RuntimeError):  # uvloop's, of one that has ended already
                child.stdin.write(program)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, child.stderr, err, MAX_ERROR_BYTES)
                await _read(child.stdout, out, MAX_ANSWER_BYTES)
            await child.wait()
    if patience.cancelled_caught:
        raise NothingToConnect(f"no answer within {ANSWER_WITHIN_S:g} s")
    if child.returncode or len(out) >= MAX_ANSWER_BYTES:
        lines = err.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"{words[0]} has ended with exit code {child.returncode}"
        raise NothingToConnect(one_line(why)[:MAX_REASON])
    return bytes(out)


async def _read(stream: asyncio.StreamReader, into: bytearray, most: int) -> None:
    """Read to the end, or until it is more than anybody asked for."""
    while len(into) < most and (data := await stream.read(1 << 16)):
        into += data
