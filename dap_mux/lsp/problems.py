"""Diagnostics for breakpoints that some ranks could not set, and code actions that fix them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from dap_mux.lsp import launch_json_features, mapping_fixes
from dap_mux.lsp.jsonc import Edit
from dap_mux.lsp.launch_json import NAME
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.rank_state import same_file
from dap_mux.lsp.server import SOURCE, Server
from dap_mux.printable import one_line, printable
from dap_mux.session_files import SessionFile

KINDS: Final = (types.CodeActionKind.QuickFix, types.CodeActionKind.Empty)
MAPPING_WRITTEN: Final = "dap-mux.mappingWritten"  # vscode-extension/src/constants.ts
WRITTEN: Final = (
    "The path mapping was added to {name!r} in {file}. "
    "It takes effect at the next start of that configuration."
)
Breakpoint = dict[str, Any]


def publish(ls: Server) -> None:
    """Publish the problems of all files, and clear those of files without any."""
    found: dict[str, list[types.Diagnostic]] = {}
    to_mend: set[str] = set()
    for one in ls.follower.breakpoints:
        uri = from_fs_path(one["path"])
        if uri is not None and one["message"]:
            found.setdefault(uri, []).append(_diagnostic(ls, uri, one))
        if one["mappings"] and (folder := _folder(ls, one["path"])):
            to_mend.add(_launch_file(folder).as_uri())
    for uri in sorted(ls.documents_with_problems | found.keys()):
        ls.publish(uri, found.get(uri, []))
    ls.documents_with_problems = set(found)
    before, ls.launch_files_to_mend = ls.launch_files_to_mend, to_mend
    for uri in sorted(before | to_mend):
        launch_json_features.check(ls, uri)


def _diagnostic(ls: Server, uri: str, one: Breakpoint) -> types.Diagnostic:
    return types.Diagnostic(
        range=_line(ls, uri, one),
        severity=types.DiagnosticSeverity.Warning,
        source=SOURCE,
        message=printable(f"breakpoint: {one['message']}"),
    )


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
        whole = mapping_fixes.new_file(entry, folder=folder, port=session.port)
        title, edit = f"Write {NAME} with {_named(entry)}", _created(launch.as_uri(), whole)
        found.append(_action(title, edit, mapping_fixes.NEW_NAME))
    return found


async def _fixes(
    ls: Server, document: TextDocument, folder: str, session: SessionFile, mapping: Breakpoint
) -> list[types.CodeAction]:
    entry, text = mapping["entry"], document.source
    positions = Positions(ls, document)
    found = await asyncio.to_thread(
        mapping_fixes.fixes,
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
