"""Breakpoints: rank sets, `$rank`, differing answers, several clients, ranks that come later."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.pure.rank_sets import Mesh, RankId, RankSet
from dap_mux.pure.rank_sets.algebra import All
from dap_mux.pure.rank_sets.tokens import Place
from dap_mux.pure.rank_sets.world import Selection
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, introduced
from tests.support.fake_rank.rank import FakeRank
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client


def set_one(client: Client, **wanted: Any) -> dict[str, Any]:
    """Set one breakpoint; return what the client is told of it."""
    body = client.ask(
        "setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE, **wanted}]
    )
    told: dict[str, Any] = body.body["breakpoints"][0]
    return told


def sent(book: Playbook) -> list[list[dict[str, Any]]]:
    """What each rank was sent last."""
    return [rank.last_breakpoints for rank in book.ranks.values()]


def has(rank: FakeRank) -> bool:
    return bool(rank.last_breakpoints)


def test_rank_set_in_a_condition(play: Play) -> None:
    """The prefix picks the ranks, and the rest goes to them unchanged."""
    book, client = play.attached(4)
    told = set_one(client, condition="ranks(1,3): step == 2")
    assert told["verified"]
    assert "message" not in told
    condition = [{"line": LINE, "condition": "step == 2"}]
    assert sent(book) == [[], condition, [], condition]


def test_rank_set_without_its_colon(play: Play) -> None:
    """It is Python, whose NameError debugpy keeps to itself: the user is told."""
    _, client = play.attached(2)
    told = set_one(client, condition="ranks(1)")
    assert told["verified"]
    assert "add a colon: ranks(1):" in told["message"]
    assert "message" not in set_one(client, condition="ranks(1) > 3")


def test_what_cannot_be_says_so_beside_what_can(play: Play) -> None:
    """Each breakpoint of a file is answered for itself, in order."""
    book, client = play.attached(4)
    wanted = [
        {"line": 3, "condition": "ranks(0: True"},
        {"line": 4, "condition": "differ: no expression"},
        {"line": 5, "condition": "ranks(9): True"},
        {"line": LINE, "hitCondition": "%4"},
    ]
    answer = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=wanted)
    unreadable, differ, absent, good = answer.body["breakpoints"]
    assert not unreadable["verified"]
    assert "never closed" in unreadable["message"]
    assert not differ["verified"]
    assert differ["message"] == "not a Python expression: no expression"
    assert not absent["verified"]
    assert absent["message"] == "no rank of this session is selected"
    assert good["verified"]
    assert "message" not in good
    assert sent(book) == [[{"line": LINE, "hitCondition": "%4"}]] * 4


def test_rank_set_alone(play: Play) -> None:
    """Nothing behind the prefix: no condition."""
    book, client = play.attached(3)
    set_one(client, condition="ranks(2):")
    assert sent(book) == [[], [], [{"line": LINE}]]


def test_dollar_rank(play: Play) -> None:
    """`$rank` and `$world_size` are replaced rank by rank, in all three fields."""
    book, client = play.attached(2)
    set_one(client, condition="step == $rank", hitCondition="$world_size")
    set_one(client, logMessage="$rank of $world_size: {loss}")
    assert sent(book)[1] == [{"line": LINE, "logMessage": "1 of 2: {loss}"}]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("loss {loss:.4g}", "debugpy knows no formats: {format(loss, '.4g')}"),
        ("{batch[1:2]} {(lambda: 1)()} { {'a': 1} }", ""),
    ],
)
def test_a_format_in_a_log_message(rehearse: Play, text: str, hint: str) -> None:
    """It would log a syntax error at each hit."""
    _, client = rehearse.attached(2)
    told = set_one(client, logMessage=text)
    assert (told["verified"], told.get("message", "")) == (True, hint)


def test_mesh(play: Play) -> None:
    """Dimensions of the mesh pick ranks, and stand for their index."""
    book = play(4, meshes={"job": Mesh.parse("dp=2,tp=2")})
    client = attached(book)
    set_one(client, condition="ranks(tp=1): step == $dp")
    assert [has(rank) for rank in book.ranks.values()] == [False, True, False, True]
    assert sent(book)[3] == [{"line": LINE, "condition": "step == 1"}]


def test_differing_answers(play: Play) -> None:
    """Verified where any rank verified it; the message names the others and why."""
    book = play(4)
    for number in (1, 2):
        book.rank(number).missing.add(PATH)
    client = attached(book)
    told = set_one(client)
    assert told["verified"]
    assert told["message"] == f"file missing on ranks 1-2: {PATH}"


def test_verified_nowhere(play: Play) -> None:
    """No rank has the file."""
    book = play(2)
    for rank in book.ranks.values():
        rank.missing.add(PATH)
    client = attached(book)
    told = set_one(client)
    assert not told["verified"]
    assert told["message"] == f"file missing on ranks 0-1: {PATH}"


def test_silent_rank(play: Play) -> None:
    """The answer waits 5 s for a silent rank, names it, and its late word is an event."""
    book, client = play.attached(3)
    book.rank(2).silent = {"setBreakpoints"}
    waiting = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 7}])
    assert waiting.response is None
    book.wait(5)
    told = waiting.body["breakpoints"][0]
    assert told["verified"]
    assert told["message"].startswith("rank 2: ")


def test_late_rank(play: Play) -> None:
    """A rank that comes later gets its breakpoints before it runs on; clients hear by event."""
    book, client = play.attached(1)
    told = set_one(client, condition="ranks(1): True")
    assert not told["verified"]
    book.know(1)
    book.wait(1)
    changed = client.of("breakpoint")[-1]["breakpoint"]
    assert changed["id"] == told["id"]
    assert changed["verified"]
    assert sent(book) == [[], [{"line": LINE, "condition": "True"}]]


def test_late_ranks_of_a_name_that_is_given_anew(play: Play) -> None:
    """A rank that comes later has what the name means when it comes."""
    book, client = play.attached(1)
    client.ask("groups", define={"name": "some", "ranks": "ranks(1:2)"})
    set_one(client, condition="@some: True")
    for ranks in ("ranks(1:2)", "ranks(3:)"):
        client.ask("groups", define={"name": "some", "ranks": ranks})
        for _ in range(2):
            book.know(len(book.ranks))
            book.wait(1)
    there = {"line": LINE, "condition": "True"}
    assert sent(book) == [[], [], [], [there], [there]]


def test_two_clients_on_one_line(play: Play) -> None:
    """debugpy keeps only the last of two: `(a) or (b)`, and no condition wins."""
    book = play(2)
    first, second = attached(book, "first"), attached(book, "second")
    set_one(first, condition="a")
    set_one(second, condition="b")
    assert sent(book) == [[{"line": LINE, "condition": "(a) or (b)"}]] * 2
    set_one(second)
    assert sent(book) == [[{"line": LINE}]] * 2
    second.ask("disconnect")
    assert sent(book) == [[{"line": LINE, "condition": "a"}]] * 2


def test_each_client_has_its_own_ids(play: Play) -> None:
    """Both stop at one line: each hears its own breakpoint's id, also who comes later."""
    book = play(2)
    first, second = attached(book, "first"), attached(book, "second")
    one, two = set_one(first), set_one(second)
    assert one["id"] != two["id"]
    book.hits(LINE, 0)
    book.wait(0.1)
    assert first.of("stopped")[0]["hitBreakpointIds"] == [one["id"]]
    assert second.of("stopped")[0]["hitBreakpointIds"] == [two["id"]]
    late = introduced(book, "late")
    late.ask("attach", justMyCode=True)
    three = set_one(late)
    late.ask("configurationDone")
    assert late.of("stopped")[0]["hitBreakpointIds"] == [three["id"]]


def test_cleared(play: Play) -> None:
    """An empty list clears them everywhere."""
    book, client = play.attached(2)
    client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[])
    assert sent(book) == [[], []]


def test_again_after_a_reconnect(play: Play) -> None:
    """A rank whose connection was lost gets all of them again, and no second `initialized`."""
    book, client = play.attached(2)
    book.lose(1)
    book.rank(1).last_breakpoints = []
    book.wait(2)
    assert sent(book) == [[{"line": LINE}]] * 2
    assert len(client.of("initialized")) == 1


def test_ranks_that_come_back_share_one_look_at_a_rank_set(play: Play) -> None:
    """Else each of a thousand that attach would have it looked up in all of them."""
    book, client = play.attached(4)
    set_one(client, condition="ranks(1-3): step == 2")
    ((_, item),) = book.engine.breakpoints.store.items()
    looks: list[RankSet] = []

    class Counted(All):
        """Every rank; it notes when it is looked up."""

        def members(self, selection: Selection) -> frozenset[RankId]:
            looks.append(self)
            return super().members(selection)

    item.sets = (Counted(None, Place("all", 0)),)
    book.engine.breakpoints.edited(PATH)
    for number in range(4):
        book.lose(number)
        book.wait(2)
    assert all(map(has, book.ranks.values()))
    told = len(book.ranks)  # one look at each answer, for what the client is told
    assert len(looks) == 1 + told


def test_moved_line(play: Play) -> None:
    """A line past the end comes back verified, moved."""
    _, client = play.attached(2)
    body = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 999}]).body
    assert body["breakpoints"][0]["line"] == 14


def test_source_without_a_path(play: Play) -> None:
    """What has no path cannot be in a rank."""
    _, client = play.attached(1)
    answer = client.ask("setBreakpoints", source={"name": "x"}, breakpoints=[{"line": 1}])
    assert "path" in answer.refusal


def test_exception_filter_with_a_rank_set(play: Play) -> None:
    """A filter's condition may pick ranks too."""
    book, client = play.introduced(2)
    client.ask("attach", justMyCode=True)
    option = {"filterId": "raised", "condition": "ranks(1):"}
    client.ask("setExceptionBreakpoints", filters=[], filterOptions=[option])
    client.ask("configurationDone")
    lines = book.transcript.text().splitlines()
    told = [line for line in lines if "setExceptionBreakpoints" in line and "rank 1 <" in line]
    assert "raised" in told[-1]


def test_handshake_of_a_rank_that_connects_meanwhile(play: Play) -> None:
    """An answer to setBreakpoints waits for ranks that are on their way."""
    book = play(2)
    book.rank(1).silent = {"attach"}
    client = introduced(book)
    client.ask("attach", justMyCode=True)
    waiting = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE}])
    assert waiting.response is None
    book.answers(1)
    assert waiting.body["breakpoints"][0]["verified"]
    client.ask("configurationDone")


def test_the_last_breakpoint_of_a_file_is_removed_while_no_rank_is_there(play: Play) -> None:
    """Nobody has to be sent that, and the file is forgotten."""
    book, client = play.attached(1)
    book.absent.add(("job", 0))
    book.lose(0)
    answer = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[])
    assert answer.body == {"breakpoints": []}
    assert book.engine.core.faults == 0
