"""The doctor's text ends with its verdict."""

from __future__ import annotations

from dap_mux.frontends.doctor.causes import as_text
from dap_mux.frontends.doctor.machine import Machine
from dap_mux.frontends.doctor.observations import Finding, Observations

OBSERVED = Observations(Machine(), looked_at=["session 127.0.0.1:5677 with 4 ranks"])
REFUSED = Finding(
    "refused",
    "connection refused: nothing listens on 127.0.0.1:5680",
    tuple(f"no process listens on 127.0.0.1:{port}" for port in range(5680, 5730)),
    ("start the job under the debugger", "if it runs elsewhere, use that address"),
    ranks="0-3",
)
MAPPING = Finding(
    "path-mapping",
    "the ranks know train.py by another path",
    ("/srv/train.py: file missing",),
    ("add this to pathMappings of launch.json:",),
    paste='{"localRoot": "/home/me", "remoteRoot": "/srv"}',
)


def last(text: str, count: int) -> list[str]:
    """The last lines of a page."""
    return text.splitlines()[-count:]


def test_the_verdict_counts_the_problems_and_says_where_to_begin() -> None:
    blank, *verdict, first_step = last(as_text(OBSERVED, [REFUSED, MAPPING]), 4)
    assert blank == ""
    assert " ".join(line.strip() for line in verdict) == (
        "2 problems found; begin with the first: "
        "connection refused: nothing listens on 127.0.0.1:5680 (ranks 0-3)"
    )
    assert first_step == "   do:   start the job under the debugger"


def test_what_to_paste_stands_beside_the_only_thing_to_do() -> None:
    assert last(as_text(OBSERVED, [MAPPING]), 3) == [
        "1 problem found: the ranks know train.py by another path",
        "   do:   add this to pathMappings of launch.json:",
        f"         {MAPPING.paste}",
    ]


def test_nothing_wrong_is_the_verdict_too() -> None:
    assert last(as_text(OBSERVED, []), 1) == ["no problems found"]
