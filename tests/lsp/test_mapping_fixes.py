"""launch.json: a mapping is written into it, and everything else stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dap_mux.frontends.lsp.launch_json import Edit, members, read, text_of
from dap_mux.frontends.lsp.problems import fixes, new_file

FOLDER = "/home/me/proj"
ENTRY = {"localRoot": FOLDER, "remoteRoot": "/data/x", "hosts": ["node2"]}
WRITTEN = '{"localRoot": "${workspaceFolder}", "remoteRoot": "/data/x", "hosts": ["node2"]}'


def applied(text: str, edits: tuple[Edit, ...]) -> str:
    """A text after edits, as an editor makes them: all at once."""
    lines = text.splitlines(keepends=True)
    starts = [len("".join(lines[:number]).encode()) for number in range(len(lines) + 1)]
    raw = text.encode()
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        begin, end = (starts[row] + column for row, column in (edit.start, edit.end))
        raw = raw[:begin] + edit.text.encode() + raw[end:]
    return raw.decode()


def fixed(text: str, entry: dict[str, Any] | None = None, *, instead: bool = False) -> str:
    """A text with its likeliest fix."""
    found = fixes(text, entry or ENTRY, instead=instead, folder=FOLDER, port=5677)
    return applied(text, found[0].edits)


def test_behind_the_others_each_with_its_own_comment() -> None:
    before = """\
// how to reach the cluster
{
    "configurations": [
        {
            "name": "é", /* ours */ "type": "debugpy", "request": "attach",
            "pathMappings": [
                // here
                { "localRoot": "a", "remoteRoot": "/b" } // the first
            ],
            "justMyCode": false, // as we like it
        },
    ],
}
"""
    after = before.replace(
        '"/b" } // the first\n', '"/b" }, // the first\n                ' + WRITTEN + "\n"
    )
    assert fixed(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"pathMappings": []', f'"pathMappings": [\n    {WRITTEN}\n]'),
        ('"pathMappings": [\n  // none\n]', f'"pathMappings": [\n  // none\n  {WRITTEN}\n]'),
        ('"pathMappings": [{"a": 1}]', f'"pathMappings": [{{"a": 1}}, {WRITTEN}]'),
        ('"pathMappings": [\n    {},\n]', f'"pathMappings": [\n    {{}},\n    {WRITTEN},\n]'),
        ('"pathMappings": [\n    {}\n]', f'"pathMappings": [\n    {{}},\n    {WRITTEN}\n]'),
        ('"x": 1', f'"x": 1, "pathMappings": [{WRITTEN}]'),
    ],
    ids=["empty", "a comment", "in one line", "a comma at the end", "lines", "none"],
)
def test_where_it_goes(before: str, after: str) -> None:
    def whole(text: str) -> str:
        return '{"configurations": [{"type": "dap-mux", ' + text + "}]}"

    assert fixed(whole(before)) == whole(after)


def test_a_configuration_without_mappings_in_lines_of_its_own() -> None:
    before = """\
{
  "configurations": [
    {
      "type": "dap-mux" // no more
    }
  ]
}"""
    added = f',\n      "pathMappings": [{WRITTEN}]\n    }}'
    expected = before.replace('"dap-mux" // no more\n    }', '"dap-mux", // no more' + added[1:])
    assert fixed(before) == expected


def test_instead_of_the_entry_for_that_root() -> None:
    entry = {"localRoot": FOLDER, "remoteRoot": "/job/new"}
    text = (
        '{"configurations": [{"type": "dap-mux", "pathMappings": [\n'
        '  {"localRoot": "${workspaceFolder}", "hosts": ["b"], "remoteRoot": "/other"},\n'
        '  {"localRoot": "${workspaceFolder}/", "remoteRoot": "/job/old"} // there\n]}]}'
    )
    assert fixed(text, entry, instead=True) == text.replace("/job/old", "/job/new")


def named(text: str, started: str = "") -> list[tuple[str, bool]]:
    """The configurations that a fix is offered of, and whether it is the likely one."""
    found = fixes(text, ENTRY, instead=False, folder=FOLDER, port=5677, configuration_name=started)
    return [(fix.configuration, fix.likely) for fix in found]


@pytest.mark.parametrize("root", ["${workspaceFolder}", FOLDER])
def test_what_is_there_already_is_not_offered_again(root: str) -> None:
    """The session does not know it yet, and complains as before."""
    there = {**ENTRY, "localRoot": root}
    one = {"name": "a", "type": "debugpy", "request": "attach", "pathMappings": [there]}
    other = {**one, "name": "b", "pathMappings": [{**there, "hosts": ["node3"]}]}
    for configurations, wanted in (([one], []), ([one, other], ["b"])):
        found = named(json.dumps({"configurations": configurations}))
        assert [configuration for configuration, _ in found] == wanted


SEVERAL: list[dict[str, Any]] = [
    {"name": "script", "type": "debugpy", "request": "launch"},
    {"name": "far", "type": "debugpy", "request": "attach", "connect": {"port": 1}},
    {"name": "here", "type": "dap-mux", "connect": {"port": 5677}},
    {"name": "ranks", "type": "dap-mux", "request": "launch"},
    {"name": "node", "type": "node", "request": "attach"},
]


def test_only_the_configuration_with_the_session_s_port() -> None:
    assert named(json.dumps({"configurations": SEVERAL})) == [("here", True)]


@pytest.mark.parametrize("port", [{"connect": {"port": "5677"}}, {"port": 5677}, {"port": "5677"}])
def test_a_port_may_be_written_in_several_ways(port: dict[str, Any]) -> None:
    other = {**SEVERAL[1], "name": "there", "connect": {}, **port}
    assert named(json.dumps({"configurations": [SEVERAL[1], other]})) == [("there", True)]


def test_the_configuration_that_the_editor_has_started_before_one_with_the_port() -> None:
    text = json.dumps({"configurations": SEVERAL})
    assert named(text, started="ranks") == [("ranks", True)]
    assert named(text, started="gone") == [("here", True)]


def test_where_the_session_s_own_has_the_entry_no_other_is_offered() -> None:
    own = {**SEVERAL[2], "pathMappings": [ENTRY]}
    assert named(json.dumps({"configurations": [SEVERAL[1], own]})) == []


@pytest.mark.parametrize("port", [2, "", "9" * 5000, None, [5677]])
def test_each_where_no_configuration_is_known_to_be_the_session_s(port: object) -> None:
    other = {**SEVERAL[1], "name": "there", "connect": {"port": port}}
    text = json.dumps({"configurations": [SEVERAL[1], other]})
    assert named(text) == [("far", False), ("there", False)]


def test_without_a_configuration_of_ours_there_is_one_then() -> None:
    text = '{\n  "version": "0.2.0",\n  "configurations": []\n}\n'
    whole = json.loads(fixed(text))["configurations"]
    assert [(one["connect"]["port"], one["pathMappings"][0]) for one in whole] == [
        (5677, json.loads(WRITTEN))
    ]
    assert whole == json.loads(new_file(ENTRY, folder=FOLDER, port=5677))["configurations"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"configurations": 7}', "nonsense", "{{{]"])
def test_what_is_no_launch_json_is_left_alone(text: str) -> None:
    assert named(text) == []


def test_a_root_outside_of_the_workspace_is_written_whole() -> None:
    entry = {"localRoot": "/home/me/project", "remoteRoot": "/d"}
    assert '"/home/me/project"' in fixed('{"configurations": [{"type": "dap-mux"}]}', entry)


def test_the_places_of_characters() -> None:
    found = text_of(members(read('{"a": "é\\u0033\\ud83d\\ude00\\"x"}'))["a"])
    assert found is not None
    assert found.value == 'é3😀"x'
    assert [column for _, column in found.places] == [7, 9, 15, 27, 29, 30]
