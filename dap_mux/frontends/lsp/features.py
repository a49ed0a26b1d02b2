"""The table of features: each LSP method and its handler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from lsprotocol import types
from pygls.uris import to_fs_path

from dap_mux.frontends.lsp import launch_json, problems
from dap_mux.frontends.lsp.file_versions import FileVersions, expression_at, function_at, parsed
from dap_mux.frontends.lsp.server import Positions, Server
from dap_mux.frontends.lsp.session_follower import Join, StoppedRanks
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_values import RankValue, side_by_side

# Hints, hovers and lenses in source files: where ranks are stopped, and values there.

# Text to show for ranks: the mark at the end of a line, and values across ranks.

_MAX_MARK_LENGTH: Final = 40
_MAX_VALUE_LENGTH: Final = 300
_MAX_VALUES: Final = 12
_NUMBERS: Final = ("min", "max", "mean", "std")
_COUNTS: Final = ("nan", "inf")


def mark(standing: StoppedRanks) -> str:
    """Return `● 0-3,7`; a long list is cut and followed by the number of ranks."""
    ranks = standing.label
    if len(ranks) > _MAX_MARK_LENGTH:
        ranks = f"{ranks[:_MAX_MARK_LENGTH].rsplit(',', 1)[0]},… ({len(standing.ids)})"
    return one_line(f"● {ranks}")


def why(standing: StoppedRanks) -> str:
    """Return which ranks are stopped there and why, for a tooltip."""
    several = "s" if len(standing.ids) > 1 else ""
    return one_line(f"stopped here ({', '.join(standing.reasons)}): rank{several} {standing.label}")


def values(expression: str, body: Mapping[str, Any], *, markdown: bool) -> str | None:
    """Return the response of `compare` as the text of a hover; None if no rank has a value."""
    if not body["values"]:
        return None
    lines = [*_values(expression, body), *_statistics(body["statistics"]), *_others(body)]
    if not markdown:
        return "\n".join(lines)
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([f"{fence}text", *lines, fence])


def _values(expression: str, body: Mapping[str, Any]) -> list[str]:
    found = [
        RankValue(one["ranks"], _short(one["value"]), one["outlier"]) for one in body["values"]
    ]
    shown = [f"  {line}" for line in side_by_side(found)[:_MAX_VALUES]]
    if len(found) > _MAX_VALUES:
        shown.append(f"  … and {len(found) - _MAX_VALUES} more values")
    if len(shown) == 1:
        return [f"{_short(expression)}  {shown[0].strip()}"]
    return [_short(expression), *shown]


def _statistics(statistics: Mapping[str, Any] | None) -> list[str]:
    if statistics is None or statistics["min"] == statistics["max"]:
        return []
    parts = [f"{name} {statistics[name]:.6g}" for name in _NUMBERS if statistics[name] is not None]
    parts += [f"{name} {statistics[name]}" for name in _COUNTS if statistics[name]]
    return [" · ".join(parts)]


def _others(body: Mapping[str, Any]) -> list[str]:
    lines = [f"  {{{one['ranks']}}}: {_short(one['message'])}" for one in body["errors"]]
    if body["missing"]:
        lines.append(f"no response from {body['missing']}")
    return lines


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MAX_VALUE_LENGTH else f"{line[:_MAX_VALUE_LENGTH]}…"


VALUE_TIMEOUT_S: Final = 1.0
RUN_TIMEOUT_S: Final = 5.0
RUN_ALL_HERE: Final = "dap-mux.runAllHere"


def hints(ls: Server, asked: types.InlayHintParams) -> list[types.InlayHint] | None:
    """Show `● 0-3` at the end of each line where ranks are stopped."""
    document = ls.document(asked.text_document.uri)
    if document is None:
        return None
    positions = Positions(ls, document)
    first, last = asked.range.start.line, min(asked.range.end.line, positions.lines - 1)
    return [
        types.InlayHint(
            position=positions.end(each.shown - 1),
            label=mark(each),
            tooltip=why(each),
            padding_left=True,
        )
        for each in ls.stopped_in(document)
        if first <= each.shown - 1 <= last
    ]


async def hover(ls: Server, asked: types.HoverParams) -> types.Hover | None:
    """Show an expression's value in the ranks that are stopped in the same function."""
    document = ls.document(asked.text_document.uri)
    standing = ls.stopped_in(document) if document else []
    page = parsed(document.source) if document and standing else None
    if document is None or page is None:
        return None
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    found = expression_at(page, line, column)
    function = function_at(page, line)
    around = (each for each in standing if function_at(page, each.shown) is function)
    here = {id for each in around for id in each.ids}
    ranks = ls.follower.ranks.kept.fold(id for id in here if len(id) == 2)
    if found is None or not ranks:
        return None
    arguments = {"expression": found.text, "ranks": ranks, "frame": 0, "timeout": VALUE_TIMEOUT_S}
    body = await ls.follower.request("compare", arguments, 2 * VALUE_TIMEOUT_S)
    shown = values(found.text, body, markdown=ls.markdown) if body else None
    if shown is None:
        return None
    kind = types.MarkupKind.Markdown if ls.markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, shown), positions.of(found))


def lenses(ls: Server, asked: types.CodeLensParams) -> list[types.CodeLens] | None:
    """Offer *Run all here* above each line where some ranks are stopped and others are not."""
    document = ls.document(asked.text_document.uri)
    if document is None:
        return None
    positions = Positions(ls, document)
    return [
        types.CodeLens(
            positions.whole(each.shown - 1),
            types.Command("Run all here", RUN_ALL_HERE, arguments=[each.path, each.line]),
        )
        for each in ls.stopped_in(document)
        if ls.follower.ranks.ranks_elsewhere(each)
    ]


async def run_all_here(ls: Server, path: str, line: int) -> None:
    """Run the other live ranks to a line where some are stopped; report those that cannot."""
    here = [one for one in ls.follower.ranks.stopped_in(path) if one.line == line]
    ranks = ls.follower.ranks.ranks_elsewhere(here[0]) if here else ""
    if not ranks:
        return
    arguments = {"ranks": ranks, "command": f"unt {path}:{line}", "timeout": RUN_TIMEOUT_S}
    body = await ls.follower.request("cast", arguments, 2 * RUN_TIMEOUT_S)
    failed = [f"rank {one['ranks']}: {one['message']}" for one in body["errors"]] if body else []
    if failed:
        message = one_line("; ".join(failed))
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))


SETTINGS: Final = "dap-mux"
PYTHON: Final = "python"


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Keep the editor's options until `initialized`."""
    ls.options = params.initialization_options


async def initialized(ls: Server, _: types.InitializedParams) -> None:
    """Start to follow a session, the one that the options name if they do."""
    await ls.prefer(ls.options)
    ls.start_task(ls.follower.run())


async def configured(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Apply changed settings; some editors send empty ones at the start."""
    ours = params.settings.get(SETTINGS) if isinstance(params.settings, dict) else None
    if isinstance(ours, dict) and "session" in ours:
        await ls.prefer(ours)


def shutdown(ls: Server, *_: None) -> None:
    """Expect `exit`."""
    ls.shut_down = True


def leave(ls: Server, *_: None) -> None:
    """`exit`: pygls ends the process, whose exit code says whether `shutdown` came first."""
    ls.exit_code = 0 if ls.shut_down else 1


def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Remember what the file contains from now on."""
    document = params.text_document
    path = to_fs_path(document.uri)
    if path and document.language_id == PYTHON:
        ls.versions[document.uri] = FileVersions(path, document.text)
    launch_json.check(ls, document.uri)


def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Check the document again."""
    launch_json.check(ls, params.text_document.uri)


def saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Ranks that start from now on run another text."""
    uri = params.text_document.uri
    if uri in ls.versions:
        ls.versions[uri].look()
    launch_json.check(ls, uri)


def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Forget the document."""
    uri = params.text_document.uri
    ls.versions.pop(uri, None)
    launch_json.check(ls, uri)


FIXES: Final = types.CodeActionOptions([types.CodeActionKind.QuickFix])
OFFERS: Final = types.CompletionOptions(trigger_characters=launch_json.TRIGGERS)
FEATURES: Final[tuple[tuple[str, Callable[..., Any], Any], ...]] = (
    (types.INITIALIZE, initialize, None),
    (types.INITIALIZED, initialized, None),
    (types.SHUTDOWN, shutdown, None),
    (types.EXIT, leave, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, configured, None),
    (types.TEXT_DOCUMENT_INLAY_HINT, hints, None),
    (types.TEXT_DOCUMENT_HOVER, hover, None),
    (types.TEXT_DOCUMENT_CODE_LENS, lenses, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, problems.actions, FIXES),
    (types.TEXT_DOCUMENT_DID_OPEN, opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, changed, None),
    (types.TEXT_DOCUMENT_DID_SAVE, saved, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, closed, None),
    (types.TEXT_DOCUMENT_COMPLETION, launch_json.offer, OFFERS),
)


def make_server(join: Join, session: str | None = None) -> Server:
    """Build the server; `join` joins a session, `session` is the one to follow."""
    # pygls warns of legitimate messages: a reply after `shutdown`, a late cancellation. Editors
    # would show the warnings on standard error as our errors.
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = Server(join, problems.publish, session)
    for name, handler, options in FEATURES:
        server.feature(name, options)(handler)
    server.command(RUN_ALL_HERE)(run_all_here)
    server.command(problems.MAPPING_WRITTEN)(problems.mapping_written)
    return server
