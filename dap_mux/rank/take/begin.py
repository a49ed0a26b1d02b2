"""Whether this process is a rank that is taken home, or one that is replayed there."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm import switch
from dap_mux.rank.environ import (
    GO_ON,
    REPLAY,
    REPLAY_AT,
    REPLAY_STORE,
    TAKE,
    TAKE_DATA,
    TAKE_LIMIT,
    TAKE_TO,
)
from dap_mux.rank.redaction import redacted
from dap_mux.rank.take.halt import Halt
from dap_mux.rank.take.mpi import MpiReplayer, MpiTaker
from dap_mux.rank.take.rank_file import (
    CALL_PLACE,
    LAST,
    NotARankFile,
    RankFile,
    place_of,
    rank_of,
)
from dap_mux.rank.take.recorder import NO_LIMIT, Recorder
from dap_mux.rank.take.replayer import Replayer, restore_surroundings
from dap_mux.rank.take.together import Together

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Mapping

    from dap_mux.rank.environ import Place

LEFT_OUT = re.compile(
    r"DAP_MUX_|DEBUG|LD_|DYLD_|PATH\Z|PYTHON|MASTER_|TORCHELASTIC_|PWD\Z|OLDPWD\Z|_\Z|SHLVL\Z|"
    r"PMIX_|PMI_|PRTE_|HYDRA_|OPAL_|OMPI_(?!COMM_WORLD_)"
)
"""Variables that are of the job's machine, or ours."""


def begin(place: Place, log: Callable[[str], object]) -> Halt | None:
    """Do what the variables TAKE and REPLAY say; return where a replay is to stop.

    Raises ValueError for a file that is none.
    """
    replayed = os.environ.pop(REPLAY, "")
    if replayed:
        return _replay(json.loads(replayed), log)
    rank = place.rank if place.rank is not None else -1  # a launcher's own process
    path = file_of(rank, os.environ)
    os.environ.pop(TAKE, None)  # processes that this one starts are no ranks
    if path:
        limit = int(os.environ.get(TAKE_LIMIT, "0")) or NO_LIMIT
        digests = bool(os.environ.get(TAKE_DATA))

        @lru_cache(maxsize=None)  # noqa: UP033  (Python 3.8)
        def recorder() -> Recorder:
            """Make it once a library is there that communicates."""
            size = place.world_size or 1
            return Recorder(path, rank, size, _environment(), limit, log, digests=digests)

        def take_mpi() -> None:
            watch = switch.mpi()
            assert watch is not None
            watch.taker = MpiTaker(recorder(), watch)

        switch.when_started(lambda: recorder().follow(switch.watch()))
        switch.when_mpi(take_mpi)
        switch.begin("take", log)
    return None


def _replay(files: dict[str, str], log: Callable[[str], object]) -> Halt | None:
    """Become the rank whose number this process has; `files`: of each that is replayed."""
    path = files[os.environ["RANK"]]
    try:
        file = RankFile(path)
    except (NotARankFile, OSError) as error:
        raise ValueError(f"cannot replay {path}: {error}") from error
    goes_on, store = bool(os.environ.pop(GO_ON, "")), os.environ.pop(REPLAY_STORE, "")
    head = file.head
    restore_surroundings(head, _wanted(head["environment"]))
    log(f"replays {len(file.calls)} calls" + (" (the file's end is missing)" if file.cut else ""))
    ranks = [*map(int, files)]
    together = Together(sorted(ranks), head["rank"], head["world"], store)
    halt = _halt(file, os.environ.pop(REPLAY_AT, ""), ranks, together, log)
    replayer = Replayer(file, halt, log, together, goes_on=goes_on)
    replayer.reasons.unrepeated.begin()
    switch.when_started(replayer.begin)
    switch.when_mpi(lambda: MpiReplayer(replayer, head["rank"], head["world"]))
    switch.begin("replay", log)
    return halt


def _halt(
    file: RankFile, text: str, ranks: list[int], together: Together, log: Callable[[str], object]
) -> Halt | None:
    """Return where this rank stops; a call's place is of one rank only, of the first if not said.

    The others run as fast until that one is there.
    """
    if not text:
        return None
    own, named = file.head["rank"], rank_of(text)
    try:
        if named not in (None, *ranks):
            raise ValueError(f"rank {named} is not replayed here")
        place = place_of(text, file) if named in (None, own) else None
    except ValueError as error:
        log(f"cannot stop at {text}: {error}")
        if not file.calls:
            return None
        place = place_of(LAST, file)
    if place is not None and place.kind == CALL_PLACE and named is None and own != ranks[0]:
        place = None
    return Halt(place, len(file.calls), log, together)


def file_of(rank: int, environ: Mapping[str, str]) -> str:
    """Return where a rank's file goes, "" if the rank is not taken."""
    ranks = [int(each) for each in environ.get(TAKE, "").split(",") if each.isdigit()]
    path = environ.get(TAKE_TO, "")
    if rank not in ranks or not path:
        return ""
    stem, dot, suffix = path.rpartition(".") if "." in path else (path, "", "")
    return path if len(ranks) == 1 else f"{stem}-{rank}{dot}{suffix}"


def _environment() -> dict[str, str]:
    """Return the variables that a replay needs, without secrets."""
    found = _wanted(os.environ)
    return {name: text for name, text in found.items() if redacted(text, name) == text}


def _wanted(variables: Mapping[str, Any]) -> dict[str, str]:
    """Return those that are the program's own; in a file of somebody else's, too."""
    return {
        name: text
        for name, text in variables.items()
        if isinstance(text, str) and not LEFT_OUT.match(name) and "\0" not in name + text
    }
