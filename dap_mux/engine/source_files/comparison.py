"""Sentences about a breakpoint's file in ranks where it is missing or differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from dap_mux.pure.pathmap import Fit
from dap_mux.pure.rank_sets import RankId, fold

MISSING: Final = "missing"
DIFFERS: Final = "differs"
K = TypeVar("K")


class FileNews(Struct, frozen=True):
    """A problem with a file in one rank; `path` is the rank's own.

    `fit`: local and remote root that would solve it; `instead`: of the entry that applies now.
    """

    kind: str
    path: str
    host: str = ""
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
        named = f"rank{several} {fold(ranks, self.default_group)}"
        return f" on {named}{self._where(ranks)}"

    def _where(self, ranks: list[RankId]) -> str:
        if len(set(self.hosts.values())) == 1:
            return ""
        return f" ({', '.join(sorted({self.hosts[rank] for rank in ranks}))})"

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
    wrong = _grouped((rank, (each.kind, each.path)) for rank, each in news.items())
    fits = _grouped((rank, (each.fit, each.instead)) for rank, each in news.items() if each.fit)
    said = [f"file {kind}{others.names(ranks)}: {path}" for (kind, path), ranks in wrong.items()]
    proposals = tuple(
        _proposal(fit, others.limits(ranks), instead=instead)
        for (fit, instead), ranks in fits.items()
    )
    return AboutFile(missing, (*said, *map(str, proposals)), proposals)


def _grouped(pairs: Iterable[tuple[RankId, K]]) -> dict[K, list[RankId]]:
    groups: dict[K, list[RankId]] = {}
    for rank, key in pairs:
        groups.setdefault(key, []).append(rank)
    return groups


def _proposal(fit: Fit, limits: Mapping[str, object], *, instead: bool) -> Proposal:
    entry = {"localRoot": fit[0], "remoteRoot": fit[1], **limits}
    return Proposal(entry, instead=instead and not limits)
