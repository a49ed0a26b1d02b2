"""Diagnostics for breakpoints that some ranks could not set, and code actions that fix them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument
from tree_sitter import Node

from dap_mux.frontends.lsp.launch_json import (
    NAME,
    Edit,
    appended,
    check,
    items,
    members,
    ours,
    read,
    said,
)
from dap_mux.frontends.lsp.server import Positions, Server, diagnostic
from dap_mux.frontends.lsp.session_follower import same_file
from dap_mux.pure.printable import one_line, printable
from dap_mux.system.session_files import SessionFile

KINDS: Final = (types.CodeActionKind.QuickFix, types.CodeActionKind.Empty)
MAPPING_WRITTEN: Final = "dap-mux.mappingWritten"  # vscode-extension/src/constants.ts
WRITTEN: Final = (
    "The path mapping was added to {name!r} in {file}. "
    "It takes effect at the next start of that configuration."
)
FOLDER: Final = "${workspaceFolder}"
NEW_NAME: Final = "Remote Attach to Cluster"
_DIGITS: Final = re.compile("[0-9]{1,5}")
Breakpoint = dict[str, Any]


def publish(ls: Server) -> None:
    """Publish the problems of all files, and clear those of files without any."""
    found: dict[str, list[types.Diagnostic]] = {}
    to_mend: set[str] = set()
    for one in ls.follower.breakpoints:
        uri = from_fs_path(one["path"])
        if uri is not None and one["message"]:
            message = printable(f"breakpoint: {one['message']}")
            found.setdefault(uri, []).append(diagnostic(_line(ls, uri, one), message))
        if one["mappings"] and (folder := _folder(ls, one["path"])):
            to_mend.add(_launch_file(folder).as_uri())
    for uri in sorted(ls.documents_with_problems | found.keys()):
        ls.publish(uri, found.get(uri, []))
    ls.documents_with_problems = set(found)
    before, ls.launch_files_to_mend = ls.launch_files_to_mend, to_mend
    for uri in sorted(before | to_mend):
        check(ls, uri)


def _line(ls: Server, uri: str, one: Breakpoint) -> types.Range:
    line = max((one["line"] or 1) - 1, 0)
    document = ls.document(uri)
    if document is None:  # the file is not on this machine
        return types.Range(types.Position(line, 0), types.Position(line, 0))
    return Positions(ls, document).whole(line)


async def actions(ls: Server, asked: types.CodeActionParams) -> list[types.CodeAction]:
    """Offer to write the mappings that would help the breakpoints of these lines."""
    path, wanted = to_fs_path(asked.text_document.uri) or "", asked.range
    lines = range(wanted.start.line + 1, wanted.end.line + 2)
    only, session = asked.context.only, ls.follower.session
    if session is None or (only and not any(kind in KINDS for kind in only)):
        return []  # not for automatic fixes on save
    mappings = [
        mapping
        for one in ls.follower.breakpoints
        if one["line"] in lines and same_file(one["path"]) == same_file(path)
        for mapping in one["mappings"]
    ]
    folder = _folder(ls, path)
    if not folder or not mappings:
        return []
    launch = _launch_file(folder)
    document = ls.document(launch.as_uri())
    if document is None:
        return _new_files(ls, launch, folder, session, mappings)
    return [
        action
        for mapping in mappings
        for action in await _fixes(ls, document, folder, session, mapping)
    ]


def _new_files(
    ls: Server, launch: Path, folder: str, session: SessionFile, mappings: list[Breakpoint]
) -> list[types.CodeAction]:
    if not ls.may_create or launch.exists():
        return []
    found = []
    for entry in (mapping["entry"] for mapping in mappings):
        whole = new_file(entry, folder=folder, port=session.port)
        title, edit = f"Write {NAME} with {_named(entry)}", _created(launch.as_uri(), whole)
        found.append(_action(title, edit, NEW_NAME))
    return found


async def _fixes(
    ls: Server, document: TextDocument, folder: str, session: SessionFile, mapping: Breakpoint
) -> list[types.CodeAction]:
    entry, text = mapping["entry"], document.source
    positions = Positions(ls, document)
    found = await asyncio.to_thread(
        fixes,
        text,
        entry,
        instead=bool(mapping["instead"]),
        folder=folder,
        port=session.port,
        configuration_name=ls.configuration,
    )
    if document.source != text:
        return []  # the edits are of another text; an editor asks again
    return [
        _action(
            f"Add {_named(entry)} to {fix.configuration!r} in {NAME}",
            types.WorkspaceEdit(changes={document.uri: _edits(positions, fix.edits)}),
            fix.configuration,
            preferred=fix.likely,
        )
        for fix in found
    ]


def mapping_written(ls: Server, configuration: str) -> None:
    """Say when a mapping takes effect; our extension for VS Code says it itself."""
    message = WRITTEN.format(file=NAME, name=configuration)
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))


def _launch_file(folder: str) -> Path:
    return Path(folder, ".vscode", NAME)


def _folder(ls: Server, path: str) -> str:
    """Return the workspace folder of a file, or else the first one."""
    folders = [to_fs_path(one.uri) or "" for one in ls.workspace.folders.values()]
    if not folders and ls.workspace.root_path:
        folders = [ls.workspace.root_path]
    around = [one for one in folders if one and Path(path).is_relative_to(one)]
    return max(around, key=len) if around else next(iter(folders), "")


def _named(entry: Breakpoint) -> str:
    who = [f"hosts {', '.join(entry['hosts'])}"] if "hosts" in entry else []
    who += [f"ranks {entry['ranks']}"] if "ranks" in entry else []
    return f"path mapping to {entry['remoteRoot']}" + (f" for {who[0]}" if who else "")


def _action(
    title: str, edit: types.WorkspaceEdit, configuration: str, *, preferred: bool = True
) -> types.CodeAction:
    return types.CodeAction(
        one_line(title),
        types.CodeActionKind.QuickFix,
        is_preferred=preferred or None,
        edit=edit,
        command=types.Command(
            "Say when it takes effect", MAPPING_WRITTEN, arguments=[configuration]
        ),
    )


def _edits(positions: Positions, edits: Iterable[Edit]) -> list[types.TextEdit]:
    return [types.TextEdit(positions.between(one.start, one.end), one.text) for one in edits]


def _created(uri: str, text: str) -> types.WorkspaceEdit:
    nothing = types.Range(types.Position(0, 0), types.Position(0, 0))
    document = types.OptionalVersionedTextDocumentIdentifier(uri)
    written = types.TextDocumentEdit(document, [types.TextEdit(nothing, text)])
    return types.WorkspaceEdit(document_changes=[types.CreateFile(uri), written])


# The text of a fix: edits that write a missing path mapping into launch.json


@dataclass(frozen=True)
class Fix:
    """Edits of one configuration. `likely`: it is the one of the running session."""

    configuration: str
    edits: tuple[Edit, ...]
    likely: bool


def fixes(
    text: str,
    entry: Mapping[str, Any],
    *,
    instead: bool,
    folder: str,
    port: int,
    configuration_name: str = "",
) -> list[Fix]:
    """Return the fix that adds an entry to the session's configuration.

    That is the one with this name, or else with the session's port. Where no configuration has
    either there is a fix for each, and without any one that adds a configuration. A configuration
    that already has the entry is skipped. `instead`: the entry replaces the one with the same
    local root.
    """
    root, entry = read(text), portable(entry, folder)
    mine = ours(root)
    named = [one for one in mine if configuration_name and _name(one) == configuration_name]
    own = named or [one for one in mine if _port(one) == port]
    lacking = [one for one in own or mine if not _has(one, entry, folder)]
    found = [
        Fix(_name(one) or "?", edits, likely=bool(own))
        for one in lacking
        if (edits := _written(one, entry, instead=instead, folder=folder))
    ]
    configurations = members(root).get("configurations")
    if (
        not found
        and lacking == mine
        and configurations is not None
        and configurations.type == "array"
    ):
        whole = json.dumps(configuration(entry, port), ensure_ascii=False)
        return [Fix(NEW_NAME, tuple(appended(configurations, whole)), likely=True)]
    return found


def new_file(entry: Mapping[str, Any], *, folder: str, port: int) -> str:
    """Return a whole launch.json."""
    whole = {"version": "0.2.0", "configurations": [configuration(portable(entry, folder), port)]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def configuration(entry: Mapping[str, Any], port: int) -> dict[str, Any]:
    """Return a configuration for a session on this machine."""
    return {
        "name": NEW_NAME,
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": "localhost", "port": port},
        "pathMappings": [dict(entry)],
        "justMyCode": False,
    }


def portable(entry: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return an entry whose local root is relative to the workspace folder, if it is inside."""
    local = PurePath(entry["localRoot"])
    if folder and local.is_relative_to(folder):
        return {**entry, "localRoot": str(PurePath(FOLDER) / local.relative_to(folder))}
    return dict(entry)


def _has(one: Node, entry: Mapping[str, Any], folder: str) -> bool:
    for known in items(members(one).get("pathMappings")):
        try:
            value = json.loads(known.text or b"")
        except ValueError:  # for example, with a comment inside
            continue
        rooted = isinstance(value, dict) and isinstance(value.get("localRoot"), str)
        if rooted and portable(value, folder) == entry:
            return True
    return False


def _written(
    one: Node, entry: Mapping[str, Any], *, instead: bool, folder: str
) -> tuple[Edit, ...]:
    mappings = members(one).get("pathMappings")
    text = json.dumps(entry, ensure_ascii=False)
    if mappings is None:
        return tuple(appended(one, f'"pathMappings": [{text}]'))
    if mappings.type != "array":
        return ()
    for known in map(members, items(mappings)):
        if instead and _is_same(known, entry, folder) and "remoteRoot" in known:
            old, new = known["remoteRoot"], json.dumps(entry["remoteRoot"], ensure_ascii=False)
            return (Edit(old.start_point, old.end_point, new),)
    return tuple(appended(mappings, text))


def _is_same(known: Mapping[str, Node], entry: Mapping[str, Any], folder: str) -> bool:
    roots = (said(known.get("localRoot")), str(entry["localRoot"]))
    here = [PurePath(folder, root.replace(FOLDER, folder)) for root in roots]
    return here[0] == here[1] and not {"ranks", "hosts"} & known.keys()


def _name(one: Node) -> str:
    return said(members(one).get("name"))


def _port(one: Node) -> int:
    """Return the port of a configuration, a number or a text; 0 without one."""
    connect = members(members(one).get("connect"))
    node = connect.get("port") or members(one).get("port")
    text = said(node) or (node.text.decode(errors="replace") if node and node.text else "")
    return int(text) if _DIGITS.fullmatch(text) else 0
