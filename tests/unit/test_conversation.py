"""The checker itself: it lets good conversations pass and names what is wrong with bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.conversation import Conversation
from tests.support.schema import editions, names, validate

Json = dict[str, Any]


def request(seq: int, command: str, **arguments: object) -> Json:
    return {"seq": seq, "type": "request", "command": command, "arguments": arguments}


def response(seq: int, request_seq: int, command: str, **more: object) -> Json:
    same = {"seq": seq, "type": "response", "request_seq": request_seq, "command": command}
    return {**same, "success": True, **more}


def event(seq: int, name: str, **body: object) -> Json:
    return {"seq": seq, "type": "event", "event": name, "body": body}


@pytest.fixture
def conversation() -> Conversation:
    made = Conversation()
    made.client_sent(request(1, "initialize", adapterID="debugpy"))
    made.server_sent(response(1, 1, "initialize", body={}))
    return made


class TestSchema:
    def test_debugpy_brings_an_edition_that_knows_the_usual_names(self) -> None:
        assert editions()
        assert {"initialize", "attach", "stackTrace", "runInTerminal"} <= names().requests
        assert {"initialized", "stopped", "continued", "output"} <= names().events

    @pytest.mark.parametrize(
        ("message", "fault"),
        [
            (event(1, "stopped", reason=3), "body.reason"),
            (event(1, "stopped"), "'reason' is a required property"),
            (request(1, "stackTrace"), "'threadId' is a required property"),
            (response(1, 1, "threads", body={"threads": [{"id": "1"}]}), "threads[0].id"),
            ({"seq": 1, "type": "event"}, "'event' is a required property"),
            ({"seq": "1", "type": "event", "event": "initialized"}, ".seq"),
            ({"seq": 1, "type": "news"}, ".type"),
        ],
    )
    def test_a_fault_is_named_by_its_path(self, message: Json, fault: str) -> None:
        with pytest.raises(AssertionError, match="not valid DAP") as caught:
            validate(message)
        assert fault in str(caught.value)

    @pytest.mark.parametrize(
        "message",
        [
            request(1, "cast", ranks="0-3", timeout=5),
            response(2, 1, "list", body={"ranks": [], "counts": {}}),
            event(3, "debugpySockets", sockets=[]),
            event(4, "output", category="telemetry", output="ptvsd", data={"packageVersion": "1"}),
        ],
    )
    def test_what_the_schema_does_not_know_passes_as_a_base_message(self, message: Json) -> None:
        validate(message)

    def test_an_error_without_a_body_passes_unless_strict(self) -> None:
        message = {**response(1, 1, "next"), "success": False, "message": "no"}
        validate(message)
        with pytest.raises(AssertionError, match="'body' is a required property"):
            validate(message, strict=True)

    def test_a_response_must_answer_the_command_that_was_asked(self) -> None:
        with pytest.raises(AssertionError, match="answers a 'next' request"):
            validate(response(1, 1, "stepIn"), "next")


class TestConversation:
    def test_a_proper_one_passes(self, conversation: Conversation) -> None:
        conversation.client_sent(request(2, "threads"))
        conversation.server_sent(event(2, "initialized"))
        conversation.server_sent(response(3, 2, "threads", body={"threads": []}))
        conversation.server_sent(event(4, "terminated"))
        conversation.finish()

    def test_seq_must_rise(self, conversation: Conversation) -> None:
        with pytest.raises(AssertionError, match="seq 1 after 1"):
            conversation.server_sent(event(1, "initialized"))

    def test_a_request_is_answered_once(self, conversation: Conversation) -> None:
        with pytest.raises(AssertionError, match="answers nothing that waits"):
            conversation.server_sent(response(2, 1, "initialize", body={}))

    @pytest.mark.parametrize("name", ["initialized", "terminated"])
    def test_some_events_come_once(self, conversation: Conversation, name: str) -> None:
        conversation.server_sent(event(2, name))
        with pytest.raises(AssertionError, match=f"a second {name}"):
            conversation.server_sent(event(3, name))

    def test_nothing_precedes_the_response_to_initialize(self) -> None:
        with pytest.raises(AssertionError, match="before initialize"):
            Conversation().server_sent(event(1, "initialized"))
        Conversation(strict=False).server_sent(event(1, "initialized"))

    def test_the_end_shows_what_was_never_answered(self, conversation: Conversation) -> None:
        conversation.client_sent(request(2, "threads"))
        with pytest.raises(AssertionError, match="never answered"):
            conversation.finish()
        conversation.finish(expect_all_answered=False)

    def test_reverse_requests_are_watched_too(self, conversation: Conversation) -> None:
        conversation.server_sent(request(2, "runInTerminal", cwd="/", args=["true"]))
        conversation.client_sent(response(2, 2, "runInTerminal", body={}))
        conversation.finish()
