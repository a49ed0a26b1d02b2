"""Hints, hovers and lenses in source files: where ranks are stopped, and values there."""

from __future__ import annotations

from typing import Final

from lsprotocol import types

from dap_mux.lsp import rendering
from dap_mux.lsp.expressions import ParsedSource
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.server import Server
from dap_mux.printable import one_line

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
            label=rendering.mark(each),
            tooltip=rendering.why(each),
            padding_left=True,
        )
        for each in ls.stopped_in(document)
        if first <= each.shown - 1 <= last
    ]


async def hover(ls: Server, asked: types.HoverParams) -> types.Hover | None:
    """Show an expression's value in the ranks that are stopped in the same function."""
    document = ls.document(asked.text_document.uri)
    standing = ls.stopped_in(document) if document else []
    page = ParsedSource.read(document.source) if document and standing else None
    if document is None or page is None:
        return None
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    found = page.expression_at(line, column)
    here = [id for each in standing if page.same_function(each.shown, line) for id in each.ids]
    ranks = ls.follower.ranks.name((id[0], id[1]) for id in here if len(id) == 2)
    if found is None or not ranks:
        return None
    arguments = {"expression": found.text, "ranks": ranks, "frame": 0, "timeout": VALUE_TIMEOUT_S}
    body = await ls.follower.request("compare", arguments, 2 * VALUE_TIMEOUT_S)
    shown = rendering.values(found.text, body, markdown=ls.markdown) if body else None
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
