"""The scripted agent: from a symptom to a rank, a line and a cause, by the tools' answers alone.

It was written before the bugs that it is scored on; `rules` has what it concludes, and
`docs/agents.md` the score.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from tests.agent_score.program import Program
from tests.agent_score.rules import (
    PEER_IS_GONE,
    At,
    Looked,
    Named,
    cause_of_exception,
    cause_of_value,
    entered,
    frames,
    is_strange,
    names_for,
    odd_ranks,
    of_hang,
    of_slow,
    root_of,
)

Body = dict[str, Any]
Call = Callable[..., Awaitable[Body]]
Judge = Callable[[Looked, Program], tuple[int, str]]
Symptom = Literal["hang", "wrong", "crash", "slow"]
MOST_CALLS: Final = 8
MOST_NAMES: Final = 12
AROUND: Final = 60
WAIT_S: Final = 25.0
TRIES: Final = 2


class Agent:
    """One search; `call` calls a tool by its name."""

    def __init__(self, call: Call, session: str) -> None:
        self._tool = call
        self._session = session
        self._calls = 0

    async def find(self, symptom: Symptom, watch: str = "", at: str = "") -> Named:
        """Name rank, place and cause. `watch` and `at`: what is wrong, and the line's text."""
        if symptom == "wrong":
            return await self._wrong(watch, at)
        if symptom == "crash":
            return await self._crash()
        return await self._hang(of_slow if symptom == "slow" else of_hang)

    async def _call(self, tool: str, **arguments: Any) -> Body:
        if self._calls >= MOST_CALLS:
            return {}
        self._calls += 1
        if tool == "go":
            arguments["request_id"] = str(self._calls)
        return await self._tool(tool, session=self._session, **arguments)

    async def _source(self, path: str) -> Program:
        """Return the program's text, in two calls where it is long."""
        lines: list[str] = []
        for first in (1, 2 * AROUND + 2):
            body = await self._call("source", path=path, line=first + AROUND, around=AROUND)
            lines += [one.partition(": ")[2] for one in body.get("source", ())]
            if len(lines) >= body.get("of", 0) or len(lines) < 2 * AROUND:
                break
        return Program(lines)

    # A job that does not get on

    async def _hang(self, judge: Judge = of_hang) -> Named:
        looked, files = await self._why()
        if not looked.suspects or looked.verdict in ("healthy", "undecided"):
            looked, files = await self._odd_stacks(looked)
        path = self._file_of(looked, files)
        program = await self._source(path)
        if not looked.suspects:
            return Named("", path, 0, "other wait")
        suspect = looked.suspects[0]
        if not suspect.stack:
            printed = await self._call("output")
            texts = [one["text"] for one in printed.get("lines", ()) if ".py" in one["text"]]
            looked = looked._replace(said=f"{looked.said} left: {' '.join(texts)}")
        line, cause = judge(looked, program)
        return Named(suspect.ranks, path, line, cause)

    async def _why(self) -> tuple[Looked, list[str]]:
        body = await self._call("why")
        files = body.get("files", [])
        found = [
            At(one["ranks"], frames(one["stack"], files), one["waitingFor"])
            for one in body.get("suspects", ())
        ]
        cycle = body.get("verdict") == "p2p-cycle"
        if cycle and found:
            ranks = ",".join(one.ranks for one in found)
            found = [found[0]._replace(ranks=ranks), *found[1:]]
        said = " ".join([body.get("sentence", ""), *body.get("evidence", ())])
        return Looked(found[:1], found[1:], body.get("verdict", ""), said), files

    async def _odd_stacks(self, looked: Looked) -> tuple[Looked, list[str]]:
        """Where ranks are: those in the smallest group stand elsewhere than the rest."""
        body = await self._call("stacks")
        files = body.get("files", [])
        found = [At(one["ranks"], frames(one["stack"], files)) for one in body.get("stacks", ())]
        found.sort(key=lambda one: count(one.ranks))
        return looked._replace(suspects=found[:1], others=found[1:]), files

    @staticmethod
    def _file_of(looked: Looked, files: list[str]) -> str:
        stacks = [one.stack for one in (*looked.suspects, *looked.others) if one.stack]
        name = stacks[0][0].file if stacks else ""
        return next((path for path in files if path.endswith(f"/{name}")), "".join(files[:1]))

    # A job that ends with an exception

    async def _crash(self) -> Named:
        body = await self._call("lease", action="take")
        first = body.get("stopped") or [{}]
        body = await self._moved(await self._call("go", action="continue", wait=WAIT_S))
        held = [one for one in body.get("stopped", ()) if "exception" in one.get("reason", "")]
        gone = [one for one in body.get("others", ()) if one.get("state") == "exited"]
        text = str(body.get("exception", ""))
        if held and not (gone and PEER_IS_GONE.search(text)):
            return await self._of_exception(min(held, key=lambda one: count(one["ranks"])), text)
        if gone and (held or body.get("state") != "ended"):
            return await self._hang()
        printed = await self._call("output")
        said = "\n".join(one["text"] for one in printed.get("lines", ()))
        place = re.search(r"at\s+(\S+):(\d+)", said) or re.search(
            r'File "([^"]+)", line (\d+)', said
        )
        ranks = re.search(r"first[^:]*: ranks? ([\d,-]+)", said)
        path = str(first[0].get("path", ""))
        line = int(place[2]) if place else 0
        return Named(ranks[1] if ranks else "", path, line, cause_of_exception(said))

    async def _moved(self, body: Body) -> Body:
        """Return an answer once somebody is stopped or all have ended."""
        return await self._call("wait_for_stop") if body.get("state") == "still running" else body

    async def _of_exception(self, held: Mapping[str, str], text: str) -> Named:
        body = await self._call("stacks", ranks=held["ranks"])
        files = body.get("files", [])
        stack = next((frames(one["stack"], files) for one in body.get("stacks", ())), ())
        if not stack:
            _, _, line = held.get("place", "").rpartition(":")
            return Named(
                held["ranks"], held.get("path", ""), int(line or 0), cause_of_exception(text)
            )
        inner = stack[-1]
        path = next(path for path in files if path.endswith(f"/{inner.file}"))
        program = await self._source(path)
        if PEER_IS_GONE.search(text):
            return Named(held["ranks"], path, inner.line, "early exit")
        return Named(
            held["ranks"],
            path,
            inner.line,
            cause_of_exception(f"{text} {program.text(inner.line)}"),
        )

    # A wrong value

    async def _wrong(self, watch: str, at: str) -> Named:
        body = await self._call("lease", action="take")
        path = next((one["path"] for one in body.get("stopped", ()) if one.get("path")), "")
        if not path:
            path = next(iter((await self._call("stacks")).get("files", ())), "")
        program = await self._source(path)
        line = next((n for n, text in enumerate(program.lines, 1) if at and at in text), 0)
        names = names_for(watch, line, program, MOST_NAMES)
        await self._call("breakpoints", action="set", place=f"{path}:{line}")
        odd, nan = await self._odd_values(names)
        if not odd:
            line = program.rank_dependent(line) or line
            rank = re.search(r"rank\w*(?:\(\))? == (\d+)", program.text(line))
            cause = cause_of_value(program.statement(line), program, nan=nan)
            return Named(rank[1] if rank else "", path, line, cause)
        return await self._from(odd, line, path, program, nan)

    async def _odd_values(self, names: list[str]) -> tuple[dict[str, str], bool]:
        """Continue until values are odd in some ranks; those by name, and whether one is NaN."""
        nan = False
        for _ in range(TRIES):
            body = await self._call("go", action="continue", watch=names, wait=WAIT_S)
            body = await self._moved(body)
            watches = body.get("watches", ())
            odd = {one["expression"]: ranks for one in watches if (ranks := odd_ranks(one))}
            nan = any(map(is_strange, watches))
            if odd or body.get("state") != "stopped":
                return odd, nan
        return {}, nan

    async def _from(
        self, odd: dict[str, str], line: int, path: str, program: Program, nan: bool
    ) -> Named:
        """Follow an odd value back to the statement that made it, into functions too."""
        name, node = root_of(odd, line, program)
        ranks = odd[name]
        function = entered(node, program)
        while function and self._calls <= MOST_CALLS - 2:
            body = program.functions[function].body
            last = max(
                each.lineno for each in ast.walk(ast.Module(body, [])) if isinstance(each, ast.stmt)
            )
            await self._call("breakpoints", action="set", place=f"{path}:{last}")
            inner = names_for(_shown(program, last), last, program, MOST_NAMES)
            found, strange = await self._odd_values(inner)
            if not found:
                break
            name, inside = root_of(found, last, program)
            nan, ranks, node = nan or strange, found[name], inside or program.statement(last)
            function = entered(node, program)
        if function and node is not None:
            node = program.statement(program.by_rank_in(function)) or node
        cause = cause_of_value(node, program, nan=nan)
        return Named(ranks, path, node.lineno if node is not None else line, cause)


def _shown(program: Program, line: int) -> str:
    """Return what a function returns, as an expression."""
    node = program.statement(line)
    return ast.unparse(node.value) if isinstance(node, ast.Return) and node.value else "None"


def count(ranks: str) -> int:
    """Return how many ranks a set has, as answers write it: `0-2,5`."""
    total = 0
    for part in ranks.split(","):
        low, _, high = part.partition("-")
        total += int(high) - int(low) + 1 if low.isdecimal() and high.isdecimal() else 1
    return total
