"""What a rank that calls says of itself: its bytes are hostile too."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.session.dial_out import MAX_RANKS, Registration, read_registration

SAID = {"group": "job", "rank": 3, "host": "node1", "pid": 4711, "coords": {"tp": 1},
        "world_size": 8}  # fmt: skip


def test_a_rank_as_it_should_be() -> None:
    assert read_registration(SAID) == Registration("job", 3, "node1", 4711, {"tp": 1}, 8)
    little = {"group": "job", "rank": None, "host": "node1", "pid": 1}
    assert read_registration(little) == Registration("job", None, "node1", 1, {}, 0)


@pytest.mark.parametrize(
    ("said", "patterns"),
    [(None, ()), (False, ()), (True, ("*",)), (["*Task-Threads*"], ("*Task-Threads*",))],
)
def test_the_threads_that_run_user_code(said: object, patterns: tuple[str, ...]) -> None:
    assert read_registration({**SAID, "userThreads": said}).traits.user_threads == patterns


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({"group": "a b"}, "invalid group"),
        ({"group": None}, "invalid group"),
        ({"host": ""}, "invalid host"),
        ({"host": "\x1b[31m"}, "invalid host"),
        ({"rank": -1}, "invalid rank or pid"),
        ({"rank": MAX_RANKS}, "invalid rank or pid"),
        ({"rank": True}, "invalid rank or pid"),
        ({"pid": "1"}, "invalid rank or pid"),
        ({"coords": [1]}, "coords"),
        ({"coords": {"tp": "x"}}, "coords"),
        ({"world_size": MAX_RANKS + 1}, "world_size"),
        ({"world_size": "8"}, "world_size"),
        ({"localRoot": "src"}, "localRoot must be the full path of a folder"),
        ({"localRoot": "/src"}, "remoteRoot must be the full path of a folder"),
        ({"localRoot": "/src", "remoteRoot": 1}, "remoteRoot must be the full path"),
        ({"swallowsExceptions": 1}, "swallowsExceptions must be true or false"),
        ({"userThreads": 1}, "userThreads must be true or at most 32 names"),
        ({"userThreads": ["x"] * 33}, "userThreads must be true or at most 32 names"),
        ({"userThreads": [1]}, "userThreads must be names of threads"),
        ({"userThreads": ["x" * 129]}, "userThreads must be names of threads"),
    ],
)
def test_nonsense_is_refused(what: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_registration({**SAID, **what})
