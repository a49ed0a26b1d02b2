"""The checker itself: it lets good conversations pass and names what is wrong with bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.conversation import Conversation
from tests.support.schema import validate

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


class TestConversation:
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
