"""Texts of files that only a rank's host has, which clients request by `source`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Raw, Struct, field

from dap_mux.engine.inputs import LocalText
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.outputs import ReadLocal
from dap_mux.engine.source_files.diagnosis import Files, local_path
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.pure import remote as probe
from dap_mux.pure.errors import StaleHandle
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Body, plain, raw
from dap_mux.pure.protocol.rank_messages import SourceText
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import call

DISK_TIMEOUT_S: Final = 0.5  # a stack waits so long for the client's disk
MAX_CACHED_CHARS: Final = 16 * 1024 * 1024
MAX_FILES: Final = 16_384  # for which clients were given a reference
MIME: Final = "text/x-python"


class Remote(Struct):
    """A file of one host. `given`: debugpy's own references to it, as our handles, by rank."""

    host: str
    path: str
    given: dict[DebuggeeId, int] = field(default_factory=dict)


# debugpy sets a `sourceReference` only if there are mappings, and then for every file outside of
# them, whether the client has it or not (measured); its references also differ from rank to rank.
# If we know which files a client has, a frame whose file it lacks gets a reference of ours, the
# same for all ranks of a host; a frame whose file it has keeps its plain path. The text is read by
# an evaluate or requested from debugpy, which both work while the rank runs, and cached.
class Sources:
    """Gives clients the text of files that they lack."""

    def __init__(self, core: SessionState, files: Files) -> None:
        self._core = core
        self._files = files
        self._numbers: Recent[tuple[str, str], int] = Recent(MAX_FILES)
        self._remotes: Recent[int, Remote] = Recent(MAX_FILES)
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._kept = 0

    def owns(self, number: object) -> bool:
        """Whether a `sourceReference` is one of ours."""
        return number in self._remotes

    # Frames

    def mark(self, client: Client, rank: Rank, body: Raw, then: Callable[[Raw], None]) -> None:
        """Call `then` with a `stackTrace` body whose sources have the references needed."""
        if not self._files.are_here(client):
            then(body)
            return
        stack = plain(body)
        sources = list(_sources(stack))
        paths = {source["path"]: local_path(client, source["path"]) for source in sources}
        asked = tuple(dict.fromkeys(paths.values()))

        def marked(digests: dict[str, str]) -> None:
            for source in sources:
                self._mark(rank, source, has=bool(digests.get(paths[source["path"]])))
            then(raw(stack))

        known = self._files.known(asked)
        if known is not None:
            marked(known)
            return
        found: dict[str, str] = {}

        def looked(digests: dict[str, str]) -> None:
            found.update(digests)
            join.arrive(asked)

        def done(late: frozenset[tuple[str, ...]]) -> None:
            if late:
                then(body)  # a disk may hang
            else:
                marked(found)

        join = Join(self._core, [asked], done, DISK_TIMEOUT_S)
        self._files.find(client, asked, looked)

    def _mark(self, rank: Rank, source: Body, *, has: bool) -> None:
        if has:
            source["sourceReference"] = 0
            return
        path = paths_of(self._core, rank).to_remote(source["path"]) or source["path"]
        number = self._number(host_of(rank), path)
        given = source.get("sourceReference")
        if given:
            self._remotes[number].given[rank.id] = given
        source["sourceReference"] = number

    def _number(self, host: str, path: str) -> int:
        number = self._numbers.get((host, path))
        if number is None:
            number = self._numbers[host, path] = self._core.handles.reserve()
            self._remotes[number] = Remote(host, path)
        return number

    # Texts

    def answer(self, request: ClientRequest) -> bool:
        """Answer `source`; return False if debugpy has to, which has no text of a path alone.

        With `read` the rank in focus, or the first, reads it.
        """
        arguments = plain(request.arguments)
        source = arguments.get("source") or {}
        number = source.get("sourceReference") or arguments.get("sourceReference")
        if not isinstance(number, int) or number < 1:
            linked = (rank for rank in self._core.sorted_ranks() if rank.phase.linked)
            rank = focused(self._core, request.client) or next(linked, None)
            if rank is None or not source.get("path") or not arguments.get("read"):
                return False
            path = paths_of(self._core, rank).to_remote(source["path"]) or source["path"]
            number = self._number(host_of(rank), path)
        if number in self._texts:
            self._texts.move_to_end(number)
            self._tell(request, self._texts[number])
        elif number in self._remotes:
            self._fetch(request, number, self._remotes[number])
        else:
            self._ask(request, number, number)
        return True

    def _tell(self, request: ClientRequest, text: str) -> None:
        to_clients.respond(self._core, request, {"content": text, "mimeType": MIME})

    def _fetch(self, request: ClientRequest, number: int, remote: Remote) -> None:
        for handle in remote.given.values():
            if self._core.handles.is_alive(handle):
                self._ask(request, number, handle)
                return
        host = remote.host
        ranks = (r for r in self._core.sorted_ranks() if host_of(r) == host and r.phase.linked)
        rank = next(ranks, None)
        if rank is None:
            raise StaleHandle(f"no rank of {host} is left to read {remote.path}")
        expression = probe.read(self._core.injected["file_probe"], remote.path)

        def told(content: probe.Content | None, reply: Reply) -> None:
            if content is None:
                to_clients.refuse(self._core, request, reply.problem)
            elif content.text is None:
                problem = f"cannot read {remote.path}: {content.problem}"
                to_clients.refuse(self._core, request, problem)
            else:
                self._keep(number, content.text)
                self._tell(request, content.text)

        to_ranks.evaluate(self._core, rank, expression, probe.content, told)

    def _ask(self, request: ClientRequest, number: int, handle: int) -> None:
        """Ask debugpy for the text of a reference of its own. Raises `StaleHandle`."""
        id, reference = self._core.handles.resolve(Kind.SOURCE, handle)
        arguments = {"source": {"sourceReference": reference}, "sourceReference": reference}

        def answered(said: SourceText | None, reply: Reply) -> None:
            if said is None or said.content is None:
                to_clients.refuse(self._core, request, reply.problem, to_clients.RANK_ERROR)
                return
            self._keep(number, said.content)
            self._tell(request, said.content)

        rank = self._core.ranks[id]
        to_ranks.ask_for(self._core, rank, "source", arguments, SourceText, answered)

    def _keep(self, number: int, text: str) -> None:
        self._texts[number] = text
        self._kept += len(text)
        while self._kept > MAX_CACHED_CHARS and len(self._texts) > 1:
            self._kept -= len(self._texts.popitem(last=False)[1])


def _sources(stack: Body) -> list[Body]:
    """Return the sources that are files: `<string>` and the like are debugpy's own."""
    frames = stack.get("stackFrames")
    known = frames if isinstance(frames, list) else []
    return [
        source
        for source in (frame.get("source") for frame in known if isinstance(frame, dict))
        if isinstance(source, dict)
        and isinstance(source.get("path"), str)
        and not source["path"].startswith("<")
    ]


# The text of code that came to a rank by value, from a client that has the file.
#
# The rank compares it with the code that it has, and shows it in tracebacks and to clients that
# lack the file. Where it is another text, breakpoints in it may be at other lines: that is told.

DIFFERS: Final = "differs"  # as in dap_mux/rank/injected/attach/missing_files.py


class CodeTexts:
    """Brings texts to the ranks that have their code and not the file."""

    def __init__(self, core: SessionState, files: Files) -> None:
        self._core = core
        self._files = files
        files.code_found.add(self.found)
        self._waiting: dict[str, set[DebuggeeId]] = {}  # the ranks that a text is read for

    def found(self, rank: Rank, path: str) -> None:
        """A rank has code of a file that it lacks."""
        if path in self._waiting:
            self._waiting[path].add(rank.id)
            return
        client = next(filter(self._files.are_here, self._core.controllers()), None)
        if client is not None:
            self._waiting[path] = {rank.id}
            local = local_path(client, path)
            self._core.ask_shell(
                lambda token: ReadLocal(token, client.id, local), partial(self._read, path)
            )

    def _read(self, path: str, event: LocalText) -> None:
        for id in sorted(self._waiting.pop(path, ())):
            rank = self._core.ranks.get(id)
            if event.text and rank is not None and rank.phase.live:
                self._bring(rank, path, event.text)

    def _bring(self, rank: Rank, path: str, text: str) -> None:
        remote = paths_of(self._core, rank).to_remote(path) or path
        source = self._core.injected["missing_files"]
        expression = call(source, "bring", repr(remote), repr(text))

        def brought(result: str | None, _: Reply) -> None:
            if result is not None and result.strip("'") == DIFFERS:
                self._files.has_other_code(rank, path)

        to_ranks.evaluate(self._core, rank, expression, str, brought)
