"""A rank is on its way out while others still wait for it."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, has_not_reached, look_at, place, ranks, suspects

NAME = "teardown"
ENDS = frozenset({
    "destroy_process_group", "_exit_function", "_shutdown", "_run_exitfuncs", "Finalize",
    "_python_exit", "shutdown",
})  # fmt: skip


def find(picture: Picture) -> Verdict | None:
    """By the functions that end things, or because Python is being shut down."""
    ending = [one for one in picture.live if _ends(one)]
    others = [one for one in picture.live if one not in ending]
    if not ending or not others:
        return None
    return Verdict(
        NAME,
        f"{ranks(ending)} {'is' if len(ending) == 1 else 'are'} ending, at"
        f" {place(ending[0].place)}",
        suspects(ending, picture),
        has_not_reached(ending, picture),
        look_at(ending),
    )


def _ends(one: Doing) -> bool:
    if one.samples and one.samples[-1].finalizing:
        return True
    called = one.call.function.rpartition(".")[2] if one.call else ""
    return called in ENDS or any(frame.function in ENDS for frame in one.stack)
