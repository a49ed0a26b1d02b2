"""Diagnostics for breakpoints that some ranks could not set, and code actions that fix them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from dap_mux.lsp import mapping_fixes
from dap_mux.lsp.jsonc import Edit
from dap_mux.lsp.launch_json import NAME
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.rank_state import same_file
from dap_mux.lsp.server import Server
from dap_mux.printable import printable

SOURCE: Final = "dap-mux"
KINDS: Final = (types.CodeActionKind.QuickFix, types.CodeActionKind.Empty)
Breakpoint = dict[str, Any]


def publish(ls: Server) -> None:
    """Publish the problems of all files, and clear those of files without any."""
    found: dict[str, list[types.Diagnostic]] = {}
    for one in ls.follower.breakpoints:
        uri = from_fs_path(one["path"])
        if uri is not None and one["message"]:
            found.setdefault(uri, []).append(_diagnostic(ls, uri, one))
    for uri in sorted(ls.documents_with_problems | found.keys()):
        ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, found.get(uri, []))
        )
    ls.documents_with_problems = set(found)


def _diagnostic(ls: Server, uri: str, one: Breakpoint) -> types.Diagnostic:
    return types.Diagnostic(
        range=_line(ls, uri, one),
        severity=types.DiagnosticSeverity.Warning,
        source=SOURCE,
        message=printable(f"breakpoint: {one['message']}"),
    )


def _line(ls: Server, uri: str, one: Breakpoint) -> types.Range:
    line = max((one["line"] or 1) - 1, 0)
    try:
        return Positions(ls, ls.workspace.get_text_document(uri)).whole(line)
    except (OSError, UnicodeDecodeError):  # the file is not on this machine
        return types.Range(types.Position(line, 0), types.Position(line, 0))


def actions(ls: Server, asked: types.CodeActionParams) -> list[types.CodeAction]:
    """Offer to write the mappings that would help the breakpoints of these lines."""
    path, wanted = to_fs_path(asked.text_document.uri) or "", asked.range
    lines = range(wanted.start.line + 1, wanted.end.line + 2)
    only = asked.context.only
    if only and not any(kind in KINDS for kind in only):
        return []  # not for automatic fixes on save
    return [
        action
        for one in ls.follower.breakpoints
        if one["line"] in lines and same_file(one["path"]) == same_file(path)
        for action in _actions(ls, path, one)
    ]


def _actions(ls: Server, path: str, one: Breakpoint) -> Iterator[types.CodeAction]:
    folder = _folder(ls, path)
    session = ls.follower.session
    if not folder or session is None:
        return
    launch = Path(folder, ".vscode", NAME)
    uri = launch.as_uri()
    for mapping in one["mappings"]:
        entry, instead = mapping["entry"], bool(mapping["instead"])
        try:
            document = ls.workspace.get_text_document(uri)
            text = document.source
        except (OSError, UnicodeDecodeError):
            if ls.may_create and not launch.exists():
                whole = mapping_fixes.new_file(entry, folder=folder, port=session.port)
                yield _action(f"Write {NAME} with {_named(entry)}", _created(uri, whole))
            continue
        positions = Positions(ls, document)
        for fix in mapping_fixes.fixes(
            text,
            entry,
            instead=instead,
            folder=folder,
            port=session.port,
            configuration_name=ls.configuration,
        ):
            title = f"Add {_named(entry)} to {fix.configuration!r} in {NAME}"
            edit = types.WorkspaceEdit(changes={uri: _edits(positions, fix.edits)})
            yield _action(title, edit, preferred=fix.likely)


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


def _action(title: str, edit: types.WorkspaceEdit, *, preferred: bool = True) -> types.CodeAction:
    kind = types.CodeActionKind.QuickFix
    return types.CodeAction(title, kind, is_preferred=preferred or None, edit=edit)


def _edits(positions: Positions, edits: Iterable[Edit]) -> list[types.TextEdit]:
    return [types.TextEdit(positions.between(one.start, one.end), one.text) for one in edits]


def _created(uri: str, text: str) -> types.WorkspaceEdit:
    nothing = types.Range(types.Position(0, 0), types.Position(0, 0))
    document = types.OptionalVersionedTextDocumentIdentifier(uri)
    written = types.TextDocumentEdit(document, [types.TextEdit(nothing, text)])
    return types.WorkspaceEdit(document_changes=[types.CreateFile(uri), written])
