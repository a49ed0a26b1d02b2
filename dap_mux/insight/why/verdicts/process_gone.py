"""A rank's process has ended while others still run."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits

NAME = "process-gone"
SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}  # fmt: skip
"""As Linux numbers them."""


def find(picture: Picture) -> Verdict | None:
    """It counts if it ended badly, or if somebody waits."""
    gone = picture.ended
    bad = [one for one in gone if one.standing.exit_code or _ran_out_of_memory(one)]
    if (
        not gone
        or not picture.live
        or not (bad or (picture.waiting and not picture.awaits_results))
    ):
        return None
    culprits = [*bad, *(one for one in gone if one not in bad)]
    return Verdict(
        NAME,
        f"{ranks(culprits[:1])} {_how(culprits[0])}",
        suspects(culprits, picture),
        (*(f"{ranks([one])} {_how(one)}" for one in culprits[1:]), *who_waits(picture)),
        "look at the rank's last output, then end the job: the others wait for ever",
    )


def _how(one: Doing) -> str:
    code = one.standing.exit_code
    if _ran_out_of_memory(one):
        return "was killed by the kernel: out of memory"
    if code is None:
        return f"is gone: {one.standing.problem or 'its process has ended'}"
    if code < 0:
        return f"was killed by {_signal(-code)}"
    return f"has ended with exit code {code}" if code else "has ended, without an error"


def _ran_out_of_memory(one: Doing) -> bool:
    return any(process.out_of_memory for process in one.processes)


def _signal(number: int) -> str:
    return SIGNALS.get(number, f"signal {number}")
