"""Lines in and prompts out, without a terminal."""

from __future__ import annotations

import asyncio

from dap_mux.console.plain import LONGEST, Lines, Paper


async def test_bytes_become_lines_wherever_they_are_cut() -> None:
    lines = Lines()
    for piece in (b"li", b"st\r\nhel", b"p\n\xff", b""):
        lines.feed(piece)
    assert [await lines.next() for _ in range(4)] == ["list", "help", "\ufffd", None]


async def test_a_line_without_an_end_is_cut() -> None:
    lines = Lines()
    lines.feed(b"x" * (LONGEST + 1))
    assert len(await lines.next() or "") == LONGEST + 1


async def test_lines_that_come_by_themselves_stand_before_the_prompt() -> None:
    sent: list[str] = []
    paper = Paper(sent.append)
    paper.write("hello\n")
    paper.ask(lambda: "> ")
    paper.write("news\n")
    paper.write("more\n")
    await asyncio.sleep(0)
    assert "".join(sent) == "hello\n> \nnews\nmore\n> "
    paper.answered()
    paper.write("done\n")
    await asyncio.sleep(0)
    assert "".join(sent).endswith("> done\n"), "a command is under way: no prompt"
