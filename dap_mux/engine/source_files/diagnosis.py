"""Finds files that are missing in a rank, or differ from the client's, and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

from dap_mux.engine.inputs import LocalHash
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import HashLocal
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.client_translation import from_uri
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Listeners, SessionState, host_of
from dap_mux.pure import remote as probe
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.grouping import grouped
from dap_mux.pure.pathmap import Fit, fitting
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import Found

# Sentences about a breakpoint's file in ranks where it is missing or differs.

MISSING: Final = "missing"
DIFFERS: Final = "differs"


class FileNews(Struct, frozen=True):
    """A problem with a file in one rank; `path` is the rank's own.

    `fit`: local and remote root that would solve it; `instead`: of the entry that applies now.
    """

    kind: str
    path: str
    fit: Fit | None = None
    instead: bool = False


class Proposal(Struct, frozen=True):
    """An entry of `pathMappings` that would solve the problem with a file.

    `instead`: it replaces the entry with the same local root.
    """

    entry: Mapping[str, object]
    instead: bool

    def __str__(self) -> str:
        import json  # noqa: PLC0415  (as `user_files` has it: few sessions have a proposal)

        entry = json.dumps(self.entry, ensure_ascii=False)
        if self.instead:
            return f"in pathMappings use {entry} for this localRoot"
        return f"add {entry} to pathMappings"


class AboutFile(Struct, frozen=True):
    """The part of a breakpoint's message about its file.

    Ranks in `missing` need no other reason. The `sentences` include the `proposals`.
    """

    missing: frozenset[RankId] = frozenset()
    sentences: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()


NOTHING_WRONG: Final = AboutFile()


class Others(Struct, frozen=True):
    """All ranks of the session and their hosts, which are named if there are several."""

    hosts: Mapping[RankId, str]
    default_group: str

    def names(self, ranks: list[RankId]) -> str:
        """Return ` on rank 3`, ` on ranks 4-7 (node2)`; "" if there is only one rank."""
        if len(self.hosts) == 1:
            return ""
        several = "s" if len(ranks) > 1 else ""
        named = f" on rank{several} {fold(ranks, self.default_group)}"
        if len(set(self.hosts.values())) == 1:
            return named
        return f"{named} ({', '.join(sorted({self.hosts[rank] for rank in ranks}))})"

    def limits(self, ranks: list[RankId]) -> dict[str, object]:
        """Return the keys that limit an entry to these ranks, as few as possible."""
        rest = [rank for rank in self.hosts if rank not in ranks]
        if not rest:
            return {}
        hosts = {self.hosts[rank] for rank in ranks}
        if hosts.isdisjoint(self.hosts[rank] for rank in rest):
            return {"hosts": sorted(hosts)}
        return {"ranks": fold(ranks, self.default_group)}


def about_file(news: Mapping[RankId, FileNews], others: Others) -> AboutFile:
    """Return one sentence for each problem, then one for each mapping that would solve it."""
    missing = frozenset(rank for rank, each in news.items() if each.kind == MISSING)
    wrong = grouped(((each.kind, each.path), rank) for rank, each in news.items())
    fits = grouped(((each.fit, each.instead), rank) for rank, each in news.items() if each.fit)
    said = [f"file {kind}{others.names(ranks)}: {path}" for (kind, path), ranks in wrong.items()]
    proposals = tuple(
        _proposal(fit, others.limits(ranks), instead=instead)
        for (fit, instead), ranks in fits.items()
    )
    return AboutFile(missing, (*said, *map(str, proposals)), proposals)


def _proposal(fit: Fit, limits: Mapping[str, object], *, instead: bool) -> Proposal:
    entry = {"localRoot": fit[0], "remoteRoot": fit[1], **limits}
    return Proposal(entry, instead=instead and not limits)


NO_FILE: Final = "Breakpoint in file that does not exist."  # debugpy's message (1.8.22)
ATTACH_PAUSE_S: Final = 0.3  # from the first attached rank until the attached ones are asked
MAX_FILES: Final = 16_384  # paths that clients and stacks have named
MAX_FOUND: Final = 1024  # results of each rank
COALESCE_WINDOW_S: Final = 0.2  # from the first rank's result for a file until clients are told
OTHER_CODE: Final = "other code"  # in place of a digest
OnDigests: TypeAlias = Callable[[dict[str, str]], None]


# Contents are compared by digests: of the rank's file by an evaluate in the rank, of the client's
# by the shell, if the client's files are on this machine. A rank is asked after it has accepted the
# breakpoints of a file, so no response waits for it: `breakpoint` events tell the result.
class Files:
    """Compares clients' files with the ranks'. `changed` tells of news about a path."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self.changed: Listeners[[str]] = Listeners()
        self.code_found: Listeners[[Rank, str]] = Listeners()  # of files that a rank lacks
        self._here: set[int] = set()
        self._local: Recent[str, str] = Recent(MAX_FILES)
        self._compared: Recent[str, str] = Recent(MAX_FILES)
        self._having: dict[str, set[RankId]] = {}  # the ranks that have breakpoints in a file
        self._lacking: set[tuple[RankId, str]] = set()  # and of these, who lacks it
        self._attach_timer: int | None = None
        self._found: dict[RankId, Recent[str, Found | None]] = {}
        self._open: dict[str, int] = {}  # how many ranks have not answered about a path
        self._timers: dict[str, int] = {}

    # Clients' files

    def are_here(self, client: Client) -> bool:
        """Whether a client's files are on this machine, as far as is known."""
        return client.id in self._here

    def find(self, client: Client, paths: tuple[str, ...], then: OnDigests) -> None:
        """Get the digests of a client's files; `then` is not called for a remote client."""

        def answered(event: LocalHash) -> None:
            if client.id not in self._core.clients:
                return
            if any(event.digests.values()):  # one file found proves that a client's are here
                self._here.add(client.id)
            if client.id in self._here:
                self._local.update(event.digests)
                then(event.digests)

        self._core.ask_shell(lambda token: HashLocal(token, client.id, paths), answered)

    def known(self, paths: tuple[str, ...]) -> dict[str, str] | None:
        """Return the digests of files, None unless all of them are known."""
        if any(path not in self._local for path in paths):
            return None
        return {path: self._local[path] for path in paths}

    def opened(self, client: Client, path: str) -> None:
        """A client has set breakpoints in a file."""
        local = local_path(client, path)
        self.find(client, (local,), lambda digests: self._compare(path, digests[local]))

    def _compare(self, path: str, digest: str) -> None:
        if not digest or self._compared.get(path) == digest:
            return
        self._compared[path] = digest
        self._look_around()
        self.changed.tell(path)

    # Ranks' files

    def taken(self, rank: Rank, path: str, *, told: bool, missing: bool) -> None:
        """Note a rank's answer for the breakpoints in a file: `told` of any, or that it has none.

        Lean: a thousand ranks do so at once.
        """
        id = rank.rank_id
        if rank.main:
            return  # a worker has its rank's files
        if missing:
            self._lacking.add((id, path))
        else:
            self._lacking.discard((id, path))
        if told:
            self._having.setdefault(path, set()).add(id)
            if missing or path in self._compared:
                self._look(rank, path, missing=missing)
        elif path in self._having:
            self._having[path].discard(id)

    def live(self, rank: Rank) -> None:
        """A rank is attached; ask ranks only when others that attach now are done."""
        questions = self._compared or self._lacking
        if questions and self._attach_timer is None:
            self._attach_timer = self._core.after(ATTACH_PAUSE_S, self._look_around)

    def _look_around(self) -> None:
        self._core.cancel(self._attach_timer)
        self._attach_timer = None
        having = [(id, path) for path, ranks in self._having.items() for id in ranks]
        for id, path in sorted(having):
            self._look(self._core.ranks[id], path, missing=(id, path) in self._lacking)

    def _look(self, rank: Rank, path: str, *, missing: bool) -> None:
        if path in self._found.get(rank.rank_id, ()) or not rank.phase.live:
            return
        remote = paths_of(self._core, rank).to_remote(path)
        same = remote == path and self._is_ours(rank)
        if remote is None or not (missing or (path in self._compared and not same)):
            return
        self._found.setdefault(rank.rank_id, Recent(MAX_FOUND))[path] = None
        self._open[path] = self._open.get(path, 0) + 1
        digest = self._compared.get(path, "")
        expression = probe.look_at(self._core.injected["file_probe"], remote, digest)
        looked = partial(self._looked, rank, path)
        to_ranks.evaluate(self._core, rank, expression, probe.found, looked)

    def _is_ours(self, rank: Rank) -> bool:
        """Whether we have started it on this machine: the same path is the same file."""
        return self._core.settings.owns_job and is_loopback(rank.endpoint.host)

    def _looked(self, rank: Rank, path: str, found: Found | None, reply: Reply) -> None:
        problem = reply.problem
        known = self._found.get(rank.rank_id, Recent(0))
        if found is not None and path in known:  # else the connection has been lost since
            known[path] = found
        if problem and rank.link is not None:
            self._core.warn("rank", f"cannot compare {path}: {problem}", rank)
        self._open[path] -= 1
        if not problem or path in self._timers:  # else nobody has said anything that is news
            self._consider(path)
        if not self._open[path]:
            del self._open[path]

    def _consider(self, path: str) -> None:
        """Tell of all ranks at once, but do not wait long for slow ones."""
        if not self._open[path]:
            self._tell(path)
        elif path not in self._timers:
            self._timers[path] = self._core.after(COALESCE_WINDOW_S, lambda: self._tell(path))

    def _tell(self, path: str) -> None:
        self._core.cancel(self._timers.pop(path, None))
        self.changed.tell(path)

    def verified(self, rank: Rank, path: str, before: Iterable[Body]) -> None:
        """A rank has taken breakpoints after all: it may have code of a file that it lacks."""
        if any(state.get("message") == NO_FILE for state in before):
            self.code_found.tell(rank, path)

    def has_other_code(self, rank: Rank, path: str) -> None:
        """A rank has code under this name, of another text than the client's."""
        self._found.setdefault(rank.rank_id, Recent(MAX_FOUND))[path] = Found(OTHER_CODE)
        self.changed.tell(path)

    # Results

    def about(
        self, client: Client | None, path: str, states: Mapping[DebuggeeId, Body]
    ) -> AboutFile:
        """Return the problems with a client's file in the ranks that answered with `states`."""
        if not self._found and all(state.get("message") != NO_FILE for state in states.values()):
            return NOTHING_WRONG
        news = {
            rank.rank_id: wrong
            for rank in self._core.sorted_mains()
            if rank.id in states and (wrong := self._news(client, path, rank, states[rank.id]))
        }
        if not news:
            return NOTHING_WRONG
        hosts = {rank.rank_id: host_of(rank) for rank in self._core.sorted_mains()}
        return about_file(news, Others(hosts, self._core.default_group()))

    def _news(self, client: Client | None, path: str, rank: Rank, state: Body) -> FileNews | None:
        results = self._found.get(rank.rank_id)
        found = results.get(path) if results else None
        missing = state.get("message") == NO_FILE
        local = local_path(client, path) if client else path
        digest = self._local.get(local, "") if client and self.are_here(client) else ""
        differs = found is not None and found.digest and digest not in ("", found.digest)
        if not missing and not differs:
            return None
        paths = paths_of(self._core, rank)
        remote = paths.to_remote(path) or path
        near = found.near if found else []
        if not missing:  # it differs: only a file equal to the client's is better
            near = [each for each in near if each[1] == digest]
        fit = fitting(path, digest, near, paths.root_of(path))
        kind = MISSING if missing else DIFFERS
        return FileNews(kind, remote, *(fit or ()))

    def forget(self, rank: Rank) -> None:
        """Forget a rank whose connection is gone: the next one may lead to another process."""
        if rank.main:
            return
        for path, ranks in self._having.items():
            ranks.discard(rank.rank_id)
            self._lacking.discard((rank.rank_id, path))
        self._found.pop(rank.rank_id, None)
        self._core.folders.pop(rank.rank_id, None)

    def gone(self, client: Client) -> None:
        """A client has left."""
        self._here.discard(client.id)


def local_path(client: Client, path: str) -> str:
    """Return a session's path as it is on the client's machine."""
    paths = client.translation.paths if client.translation else None
    return from_uri(paths.to_client(path)) if paths else path
