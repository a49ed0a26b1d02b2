"""Variables in evidence: those of the culprit, and those that few ranks have with another value."""

from __future__ import annotations

import json
from typing import Any

from dap_mux.pure.insight.why.py_spy import Source, SpiedFrame, threads_in
from dap_mux.pure.insight.why.variables import differences, own_frames, variables_of
from dap_mux.rank.redaction import redacted
from tests.unit.insight.test_py_spy import ASLEEP, IN_TORCH, frame, local, thread

LOOP = Source("def train():\n    for step in range(9):\n        sum()\n")


def own(*threads: dict[str, Any]) -> list[SpiedFrame]:
    return own_frames(threads_in(json.dumps([*threads]).encode()), 71)


def told(*of_ranks: dict[str, str]) -> list[str]:
    """What is said of ranks with these variables, by their numbers."""
    frames = {
        ("job", rank): own(
            thread(frame("train", "/a.py", 3, *(local(*each) for each in one.items())))
        )
        for rank, one in enumerate(of_ranks)
    }
    return differences(frames, lambda _: LOOP)


def test_variables_are_those_of_the_innermost_function_of_the_program() -> None:
    assert variables_of(own(ASLEEP)) == 'load: shard = "shard-2", step = 3'
    in_torch = thread(*IN_TORCH["frames"][:2], frame("train", "/a.py", 9, local("total", "1")))
    assert variables_of(own(in_torch)) == "train: total = 1"
    assert variables_of(own(thread(frame("<module>", "/a.py", 9, local("total", "1"))))) == ""


def test_variables_that_are_hostile_are_cut_and_harmless() -> None:
    many = [local(f"v{at}", "\x1b[31m" + "x" * 999 + "\n") for at in range(99)]
    shown = variables_of(own(thread(frame("f", "/a.py", 1, *many))))
    assert shown.isprintable()
    assert len(shown) < 12 * 100
    ranks = [{f"v{at}": f"\x1b{rank > 6}" + "x" * 999 for at in range(99)} for rank in range(9)]
    assert all(each.isprintable() for each in told(*ranks))
    assert sum(map(len, told(*ranks))) < 8 * 400


def test_what_few_ranks_have_with_another_value_is_told() -> None:
    usual = {"table": "<A at 0x7f01>", "size": "7", "rank": "1"}
    ranks = [usual, {**usual, "table": "<A at 0x7f02>"}, {**usual, "size": "4", "table": "None"}]
    assert told(*({**one, "rank": str(at)} for at, one in enumerate(ranks))) == [
        "in train: table = <A> in ranks 0-1, table = None in rank 2",
        "in train: size = 7 in ranks 0-1, size = 4 in rank 2",
    ]


def test_of_two_ranks_and_of_halves_nothing_is_told() -> None:
    assert told({"size": "4"}, {"size": "7"}) == []
    assert told(*({"size": str(at // 2)} for at in range(4))) == []


def test_of_functions_that_some_ranks_are_in_nothing_is_told() -> None:
    main, receive = frame("main", "/a.py", 3, local("step", "4")), "receive"
    frames = {
        ("job", rank): own(thread(frame(receive, "/a.py", 2, local("peer", str(peer))), main))
        for rank, peer in enumerate((0, 0, 2))
    }
    frames["job", 3] = own(thread(main))
    assert differences(frames, lambda _: LOOP) == []
    del frames["job", 3]
    assert len(differences(frames, lambda _: LOOP)) == 1


def test_the_rank_whose_loop_is_behind_is_told_first() -> None:
    ranks = [{"size": str(at == 2), "step": str(9 - at), "peer": str(at)} for at in range(4)]
    assert told(*ranks) == [
        "in train: step = 6 in rank 3, more in the others",
        "in train: size = False in ranks 0-1,3, size = True in rank 2",
    ]


def test_secrets_among_them_are_known_by_their_names() -> None:
    ranks = [{"api_key": f'"horse{at // 2}"'} for at in range(3)]
    [line] = told(*ranks)
    assert "horse" in line
    assert "horse" not in redacted(line)
