"""Patches a rank as it is attached, before it runs on; what its release of debugpy needs."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Final, TypeAlias

from msgspec import Struct

from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.pure.pathmap import HERE
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import WORKING_FOLDER, InjectedSources, call

# Which releases of debugpy the ranks may have.
#
# A job brings its own. What is older than we test works with what is known of it, and is said to be
# old; below that nothing is known, and the rank is left alone.

Version: TypeAlias = tuple[int, ...]
TESTED: Final[Version] = (1, 8, 14)  # the oldest, as in pyproject.toml
REFUSED_BELOW: Final[Version] = (1, 8, 0)
ANSWERS_WITHOUT_FRAME: Final[Version] = (1, 8, 21)
_NUMBERS: Final = r"\d+\.\d+\.\d+"


@lru_cache(maxsize=8)
def version_of(text: str) -> Version | None:
    """The numbers of a release; None where this is none."""
    found = re.match(_NUMBERS, text)
    return tuple(map(int, found[0].split("."))) if found else None


def too_old(text: str) -> str:
    """Why a rank with this debugpy is refused; "" where it is not."""
    version = version_of(text)
    if version is None or version >= REFUSED_BELOW:
        return ""
    return f"its debugpy is {text}, and dap-mux needs {_TESTED} or newer: {_UPGRADE}"


def old(text: str) -> str:
    """Return the warning about a rank with this debugpy; "" for none."""
    version = version_of(text)
    if version is None or version >= TESTED:
        return ""
    return f"its debugpy is {text}, older than {_TESTED}, the oldest tested: upgrade it: {_UPGRADE}"


def prints_values(text: str) -> bool:
    """Whether this debugpy prints what an `evaluate` without a frame should answer."""
    version = version_of(text)
    return version is not None and version < ANSWERS_WITHOUT_FRAME


def answer_without_frame(injected: InjectedSources) -> str:
    """Return what makes a rank answer an `evaluate` without a frame, whose value it would print.

    A statement, so that this itself prints nothing.
    """
    source = injected["evaluation"]
    return f"own = {{}}; exec({source!r}, own); own['answer_without_frame'](); del own"


_TESTED: Final = ".".join(map(str, TESTED))
_UPGRADE: Final = f"pip install 'debugpy>={_TESTED}'"


# The patches, evaluated in every rank in one message before it continues.
#
# A message of its own costs each rank 2 ms of CPU while many attach (measured). Frameless evaluates
# share pydevd's own globals: nothing here may leave a name behind.

PROGRAM_OVER: Final = "dap-mux: the program is over"
"""The output, as telemetry, by which a patched rank announces the end of its program."""

# multiprocessing's own helper process runs no line of the user's: it is no worker.
IS_TRACKER: Final = (
    "'multiprocessing.resource_tracker' in"
    " ' '.join(getattr(__import__('sys'), 'orig_argv', None) or __import__('sys').argv)"
)
YES: Final = "True"


def attach_expression(
    injected: InjectedSources, *, debug_children: bool, user_threads: bool = False
) -> str:
    """Return what applies the patches; see `injected.attach.attach` for its value.

    One expression, for two that are evaluated without a frame may run at once, in two threads.
    """
    debugger = "__import__('pydevd').get_global_debugger()"
    arguments = f"{debug_children}, {PROGRAM_OVER!r}, {user_threads}"
    value = f"own['attach']({debugger}, own['sent'], {arguments})"
    return injected.bundles["attach"].bring(value)


def confirmation(count: int) -> str:
    """Return what tells a patched rank that so many bytes of its output have come."""
    return f"dapMuxMark {count}"


def leave_children_alone(injected: InjectedSources) -> str:
    """Return what keeps child processes out of the debugger: else they would wait for one."""
    return call(injected["child_processes"], "leave_children_alone")


CHILDREN_MAY_WAIT: Final = "child processes may wait for the debugger"


def patch(core: SessionState, rank: Rank) -> None:
    """Evaluate all that the rank is to have before it runs on."""
    if warning := old(rank.debugpy):
        core.warn("rank", warning, rank)
    if prints_values(rank.debugpy):  # one after the other: two threads may take one each
        answering = answer_without_frame(core.injected)
        to_ranks.evaluate(core, rank, answering, str, partial(_patch, core, rank))
    else:
        _patch(core, rank)


def _patch(core: SessionState, rank: Rank, *_: object) -> None:
    """Without a way to answer they are made too, but nobody hears of it."""
    if rank.link is None:
        return
    patched = partial(_patched, core, rank)
    to_ranks.evaluate(core, rank, _patches_for(core, rank), str, patched)
    if not rank.main and any(remote == HERE for _, remote in paths_of(core, rank).roots):
        to_ranks.evaluate(core, rank, WORKING_FOLDER, str, partial(_located, core, rank))


def free_children(core: SessionState, rank: Rank) -> None:
    """A rank that is left starts children that no longer wait for a debugger."""
    expression = leave_children_alone(core.injected)
    to_ranks.evaluate(core, rank, expression, str, partial(_children_freed, core, rank))


def _patches_for(core: SessionState, rank: Rank) -> str:
    debug_children = core.flow.debugs_children
    if debug_children and rank.endpoint.dials:  # a child has no way to prove the token
        core.warn("rank", "its child processes run undebugged, because it dials out", rank)
        debug_children = False
    threads = core.rows_of(rank) == "user"
    return attach_expression(core.injected, debug_children=debug_children, user_threads=threads)


def _patched(core: SessionState, rank: Rank, said: str | None, reply: Reply) -> None:
    """Verified by what the socket itself says; where it fails the rank just stays slow.

    Of a connection that has ended meanwhile the loss is told, and the next one is asked again.
    """
    if said is None and rank.link is None:
        return
    no_delay, children, rank.process = f"{said or ''}  ".split(" ", 2)
    rank.process = rank.process.strip()
    rank.patched = no_delay == YES
    if not rank.patched:
        core.warn("rank", "TCP_NODELAY could not be set: each request takes 44 ms longer", rank)
    if children != YES:
        what = (
            "child processes may go undebugged" if core.flow.debugs_children else CHILDREN_MAY_WAIT
        )
        core.warn("rank", what if said is not None else f"{what}: {reply.problem}", rank)


def _children_freed(core: SessionState, rank: Rank, said: str | None, _: Reply) -> None:
    if said is None:
        core.warn("rank", CHILDREN_MAY_WAIT, rank)


def _located(core: SessionState, rank: Rank, said: str | None, _: Reply) -> None:
    """Where the rank runs, which is what a `remoteRoot` of "." means."""
    if said:
        core.folders[rank.rank_id] = said


# debugpy's `setDebuggerProperty`: how every rank's debugger behaves, those to come included.

COMMAND = "setDebuggerProperty"


class DebuggerProperties(Struct, eq=False):
    """The engine's part that keeps what each client has set, for ranks that are not up yet."""

    _core: SessionState
    _kept: dict[int, Body] = {}  # by client

    def set(self, request: ClientRequest) -> None:
        """`setDebuggerProperty`: kept, and sent to every rank that is there."""
        present = self._core.clients
        self._kept = {id: body for id, body in self._kept.items() if id in present}
        wanted = plain(request.arguments)
        self._kept.setdefault(request.client.id, {}).update(wanted)
        ranks = [rank for rank in self._core.sorted_ranks() if rank.phase.configurable]

        def answered(replies: dict[DebuggeeId, Reply]) -> None:
            refused = [reply.problem for reply in replies.values() if not reply.ok]
            if refused and len(refused) == len(replies):
                to_clients.refuse(self._core, request, refused[0])
            else:
                to_clients.respond(self._core, request)

        message = Broadcast(COMMAND, wanted)
        to_ranks.gather(self._core, ranks, COMMAND, lambda _: message, answered)

    def configure(self, rank: Rank) -> None:
        """Tell a rank that is new what the present clients have set."""
        for id, body in self._kept.items():
            if id in self._core.clients:
                to_ranks.ask(self._core, rank, COMMAND, body, lambda reply: None)
