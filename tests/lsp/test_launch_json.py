"""Rank sets in launch.json as it is typed: mistakes at their columns, and what may stand there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import Workspace

from dap_mux.frontends.lsp.features import make_server
from dap_mux.frontends.lsp.launch_json import completions, is_launch, offer, rank_set_problems
from dap_mux.frontends.lsp.session_follower import RankState
from tests.lsp.test_rank_state import drawn, row

HEAD = '{"configurations": [{"type": "dap-mux", "pathMappings": [{"ranks": '
TAIL = "}]}]}"


def picture() -> RankState:
    places = ((rank, {"dp": rank // 2, "tp": rank % 2}) for rank in range(4))
    return drawn(*(row(rank, coords=at, host=f"node{at['dp']}") for rank, at in places))


@pytest.mark.parametrize(
    ("value", "marked", "message"),
    [
        ("0-3 & ranks(dp==1)", "=1", "expected a rank number"),
        ("stoped", "stoped", "did you mean stopped?"),
        ("3 - ", "", "expected a rank set"),
        ("é", "é", "é"),
    ],
)
def test_a_mistake_is_marked_at_its_very_columns(value: str, marked: str, message: str) -> None:
    text = HEAD + json.dumps(value, ensure_ascii=False) + TAIL
    [one] = rank_set_problems(text)
    assert message in one.message
    begin, end = one.start[1], one.end[1]
    assert text.encode()[begin:end].decode() == marked[: end - begin]
    assert begin == len((HEAD + '"').encode()) + len(value[: value.rindex(marked)].encode())


@pytest.mark.parametrize("value", ['"0-3"', "3", '"ranks(tp=0)"', '"@slow"', '"\\u0033"'])
def test_what_is_right(value: str) -> None:
    assert list(rank_set_problems(HEAD + value + TAIL)) == []


def test_what_is_no_rank_set_at_all() -> None:
    [one] = rank_set_problems(HEAD + "[0, 1]" + TAIL)
    assert "must be a rank set" in one.message


@pytest.mark.parametrize("type", ["debugpy", "node", "python"])
def test_other_configurations_are_none_of_our_business(type: str) -> None:
    assert list(rank_set_problems((HEAD + '"nonsense"' + TAIL).replace("dap-mux", type))) == []


def test_debugpy_s_own_to_attach_are_ours() -> None:
    text = (HEAD + '"nonsense"' + TAIL).replace('dap-mux"', 'debugpy", "request": "attach"')
    assert len(list(rank_set_problems(text))) == 1


def offered(before: str, after: str = '"') -> dict[str, str]:
    """What is offered behind a text in quotes: with what it replaces."""
    text = HEAD + '"' + before + after + TAIL
    cursor = len((HEAD + '"' + before).encode())
    found = completions(text, (0, cursor), picture(), {"slow": "1,3"})
    return {one.text: text.encode()[one.start[1] : cursor].decode() for one in found}


def test_completion() -> None:
    assert offered("sto") == {"stopped": "sto"}
    assert {"all", "ranks(", "@slow", "running"} <= set(offered(""))
    assert offered("0 | @s") == {"@slow": "@s"}
    assert offered("ranks(tp=") == {"0": "", "1": ""}
    assert set(offered("ranks(")) == {"dp=", "tp="}


async def test_what_is_typed_while_the_session_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is offered is for the text that was asked about, and its place."""
    server = make_server(lambda _: pytest.fail("nobody is to be joined"))
    server.protocol._workspace = Workspace(None)
    uri, text = "file:///me/.vscode/launch.json", HEAD + '"0 | @"' + TAIL
    item = types.TextDocumentItem(uri, "jsonc", 1, text)
    server.workspace.put_text_document(item)

    async def ask(*_: object) -> dict[str, Any]:
        named = types.VersionedTextDocumentIdentifier(2, uri)
        above = types.TextDocumentContentChangeWholeDocument("// mine\n" + text)
        server.workspace.update_text_document(named, above)
        return {"groups": [{"name": "slow", "definition": "1,3"}]}

    monkeypatch.setattr(server.follower, "request", ask)
    cursor = types.Position(0, text.index("@") + 1)
    found = await offer(server, types.CompletionParams(types.TextDocumentIdentifier(uri), cursor))
    assert found is not None
    assert [one.label for one in found.items] == ["@slow"]


def test_hosts() -> None:
    text = HEAD.replace('"ranks": ', '"hosts": ["no') + '"]' + TAIL
    found = completions(text, (0, text.index('"no') + 3), picture(), {})
    assert [one.text for one in found] == ["node0", "node1"]


def test_elsewhere_nothing_is_offered() -> None:
    text = HEAD + '"all"' + TAIL
    assert completions(text, (0, text.index("dap-mux") + 1), picture(), {}) == []


def test_which_files() -> None:
    assert is_launch("/home/me/.vscode/launch.json")
    assert is_launch("c:\\work\\.vscode\\launch.json")
    assert not is_launch("/home/me/launch.json")
