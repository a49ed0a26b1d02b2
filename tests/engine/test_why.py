"""`why`: what keeps a job from moving on, asked of a whole session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dap_mux.engine.job_insight.gather_evidence import SAMPLE
from dap_mux.pure.endpoint import Traits
from dap_mux.pure.insight.why.evidence import Process
from dap_mux.pure.insight.why.verdicts import AGAIN_AFTER_S
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, stopped
from tests.engine.test_barriers import waiting
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

STILL: dict[str, Any] = {
    "files": [["/job/train.py", False], ["/job/collectives.py", False]],
    "functions": ["<module>", "all_reduce", "load"],
}


def asleep(*frames: tuple[int, int, int], call: dict[str, Any]) -> dict[str, Any]:
    """A rank whose main thread waits in the system, told the same again and again."""
    thread = {"name": "MainThread", "main": True, "frames": frames, "state": "S", "call": call}
    return {**STILL, "threads": [thread]}


RECEIVES = asleep(
    (0, 0, 40), (1, 1, 9), call={"text": "s.recv(1)", "function": "_socket.socket.recv"}
)
SLEEPS = asleep((0, 0, 24), (0, 2, 30), call={"text": "time.sleep(60)", "function": "time.sleep"})


def why(book: Playbook, client: Client, *, again: bool = False) -> Any:
    """The answer, once all samples are there; `again`: with a later look."""
    answer = client.ask("why")
    book.wait(2 + AGAIN_AFTER_S * again)
    return answer.body


def test_the_rank_that_stays_away_is_named(play: Play) -> None:
    book, client = play.attached(4)
    for number, rank in enumerate(book.ranks.values()):
        rank.data.evidence = SLEEPS if number == 2 else RECEIVES
    body = why(book, client, again=True)
    assert body["verdict"] == "not-joined"
    assert body["sentence"] == (
        "rank 2 stands at train.py:30 (load) in time.sleep(60), and the others wait"
    )
    culprit, others = body["suspects"]
    assert (culprit["ranks"], culprit["waitingFor"]) == ("2", "")
    assert (others["ranks"], others["waitingFor"]) == ("0-1,3", "all_reduce")
    assert body["waits"] == [{"ranks": "0-1,3", "for": "2"}]
    assert culprit["stack"][0] == {
        "path": "/job/train.py", "line": 30, "name": "load", "library": False,
    }  # fmt: skip
    assert body["evidence"][0] == "it has not reached all_reduce"


def test_a_rank_that_was_only_late_is_not_named(play: Play) -> None:
    """Where ranks stand still, they are looked at once more a little later."""
    book, client = play.attached(3)
    first, *others = book.ranks.values()
    first.data.evidence = SLEEPS
    for rank in others:
        rank.data.evidence = RECEIVES
    answer = client.ask("why")
    book.wait(2)
    first.data.evidence = RECEIVES
    others[0].data.evidence = SLEEPS
    book.wait(AGAIN_AFTER_S)
    assert answer.body["verdict"] == "healthy"


def test_ranks_in_the_debugger_hold_the_others_up(play: Play) -> None:
    book = play(2)
    body = why(book, stopped(book))
    assert body["verdict"] == "held-by-debugger"
    assert body["suspects"][0]["ranks"] == "0"


def test_a_breakpoint_that_waits_for_other_ranks_comes_first(play: Play) -> None:
    """Of ranks in its condition, and of those that have passed it, nothing else tells why."""
    book, client = play.scene(4, waiting, 2)
    for rank in book.ranks.values():
        rank.data.evidence = RECEIVES
    body = why(book, client)
    assert body["verdict"] == "held-by-debugger"
    assert body["sentence"] == (
        f"rank 2 is held by your barrier breakpoint at {Path(PATH).name}:{LINE}, which waits for "
        "ranks 0-1,3; remove it, or let it run on"
    )
    assert body["next"] == "cast 2 c"


def test_a_rank_that_cannot_tell_leaves_it_undecided(play: Play) -> None:
    book, client = play.attached(2)
    first, second = book.ranks.values()
    first.data.evidence, second.data.evidence = "nonsense", RECEIVES
    body = why(book, client)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("undecided", "0")


def test_what_the_system_shows_of_a_process_counts(play: Play) -> None:
    book = play(2)
    for rank in book.ranks.values():
        rank.data.process = "b p 1 2"
    client = attached(book)
    book.processes = {"b p 1 2": Process(1, "T", at=1.0)}
    body = why(book, client)
    assert body["verdict"] == "process-stopped"
    assert body["next"].startswith("kill -CONT 1")
    assert "samples" in client.ask("why", samples=1).refusal


def test_a_flight_recorder_that_is_off_is_said(play: Play) -> None:
    book, client = play.attached(3)
    for number, rank in enumerate(book.ranks.values()):
        told = SLEEPS if number == 2 else RECEIVES
        rank.data.evidence = {**told, "recorder": "on" if number else "off"}
    body = why(book, client, again=True)
    assert body["evidence"][-1] == (
        "torch's flight recorder is off (rank set 0), so it is not known in which collectives they "
        "are: TORCH_FR_BUFFER_SIZE=2000 switches it on"
    )


@pytest.mark.parametrize("form", ["bytecode", "source"])
def test_the_modules_are_sent_once(play: Play, form: str) -> None:
    book, client = play.attached(1)
    book.rank(0).data.lacks = form
    for _ in range(2):
        assert why(book, client)["verdict"] == "healthy"
    bundle = INJECTED.bundles["evidence"]
    question, lesson = bundle.ask(SAMPLE), bundle.bring(SAMPLE, compiled=form == "bytecode")
    asked = [text for text in book.rank(0).data.evaluated if text in {question, lesson}]
    assert asked == [question, lesson, *[question] * 5]


def test_a_rank_that_never_learns(play: Play) -> None:
    book, client = play.attached(1)
    book.rank(0).data.lacks = "nothing"
    body = why(book, client)
    assert (body["verdict"], body["sentence"]) == (
        "undecided",
        "rank 0: malformed response; nothing else is wrong",
    )


def test_the_stopped_thread_of_a_worker_is_told(play: Play) -> None:
    """Its main thread serves the framework, and has not stopped at anything."""
    book = play(1)
    rank = book.know(1, traits=Traits(user_threads=("Task-*",)))
    client = attached(book)
    task = {"name": "Task-1", "main": False, "frames": [(0, 2, 22)], "state": "S"}
    serves = asleep((1, 1, 468), call={"text": "select()", "function": "select.select"})
    rank.data.evidence = {**serves, "threads": [*serves["threads"], task]}
    with book.happens():
        rank.stops("breakpoint", 22, thread=2, userThreads=[{"id": 2, "name": "Task-1"}])
    book.wait(1)
    body = why(book, client)
    assert body["verdict"] == "held-by-debugger"
    assert body["suspects"][0]["stack"][0]["line"] == 22
