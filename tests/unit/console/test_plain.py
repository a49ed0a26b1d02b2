"""LineQueue in and prompts out, without a terminal."""

from __future__ import annotations

import asyncio

from dap_mux.frontends.console.plain import MAX_LINE_BYTES, LineQueue, PromptWriter


async def test_bytes_become_lines_wherever_they_are_cut() -> None:
    lines = LineQueue()
    for piece in (b"li", b"st\r\nhel", b"p\n\xff", b""):
        lines.feed(piece)
    assert [await lines.next() for _ in range(4)] == ["list", "help", "\ufffd", None]


async def test_a_line_without_an_end_is_cut() -> None:
    lines = LineQueue()
    lines.feed(b"x" * (MAX_LINE_BYTES + 1))
    assert len(await lines.next() or "") == MAX_LINE_BYTES + 1


async def test_lines_that_come_by_themselves_stand_before_the_prompt() -> None:
    sent: list[str] = []
    prompts = PromptWriter(sent.append)
    prompts.write("hello\n")
    prompts.show(lambda: "> ")
    prompts.write("news\n")
    prompts.write("more\n")
    await asyncio.sleep(0)
    assert "".join(sent) == "hello\n> \nnews\nmore\n> "
    prompts.line_entered()
    prompts.write("done\n")
    await asyncio.sleep(0)
    assert "".join(sent).endswith("> done\n"), "a command is under way: no prompt"
