"""The scripted agent: from a symptom to a rank, a line and a cause, by the tools' answers alone.

It was written before the bugs that it is scored on; `rules` has what it concludes, and
`docs/agents.md` the score.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from tests.agent_score.program import Program
from tests.agent_score.rules import (
    NO_SYNC,
    PEER_IS_GONE,
    At,
    Frame,
    Looked,
    Named,
    began,
    cause_of_exception,
    count,
    cut,
    differences,
    frames,
    in_circle,
    merged,
    of_attributes,
    of_hang,
    of_slow,
    ranks_in,
)
from tests.agent_score.values import (
    all_ranks,
    cause_of_all,
    cause_of_value,
    entered,
    is_strange,
    made_by_rank,
    names_for,
    odd_ranks,
    repeated_ranks,
    root_of,
)

Body = dict[str, Any]
Call = Callable[..., Awaitable[Body]]
Judge = Callable[[Looked, Program], tuple[str, int, str]]
Symptom = Literal["hang", "wrong", "crash", "slow"]
MOST_CALLS: Final = 8
MOST_NAMES: Final = 12
AROUND: Final = 60
SIZE: Final = 8
"""Ranks, for conditions that name them."""
WAIT_S: Final = 25.0
LOOKS: Final = 4
WAITS: Final = 3
WRAPPER: Final = "DistributedDataParallel"
CIRCLE: Final = "p2p-cycle"
ATTRIBUTES: Final = (
    "{k: v for k, v in vars(self).items() if type(v) in (int, float, str, bool, type(None))}"
)


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
        if judge is of_slow or not looked.suspects or looked.verdict in ("healthy", "undecided"):
            looked, files = await self._odd_stacks(looked)
        path = self._file_of(looked, files)
        program = await self._source(path)
        if not looked.suspects:
            return Named("", path, 0, "other wait")
        suspect = looked.suspects[0]
        if not suspect.stack:
            printed = await self._call("output")
            lines = [one for one in printed.get("lines", ()) if one["category"] != "console"]
            texts = [one["text"] for one in lines if ".py" in one["text"]]
            looked = looked._replace(said=f"{looked.said} left: {' '.join(texts)}")
        ranks, line, cause = judge(looked, program)
        return Named(ranks, path, line, cause)

    async def _why(self) -> tuple[Looked, list[str]]:
        body = await self._call("why")
        files = body.get("files", [])
        found = [
            cut(At(one["ranks"], frames(one["stack"], files), one["waitingFor"]))
            for one in body.get("suspects", ())
        ]
        said = " ".join([body.get("sentence", ""), *body.get("evidence", ())])
        differ = differences(body.get("evidence", ()))
        looked = Looked(found[:1], merged(found[1:]), body.get("verdict", ""), said, differ)
        circle = in_circle(looked)
        return (await self._of_circle(circle, looked) if circle else looked), files

    async def _of_circle(self, circle: frozenset[int], looked: Looked) -> Looked:
        """Of ranks that wait for each other those that began it, alone."""
        groups = [*looked.suspects, *looked.others]
        ranks = began(circle, looked.differences)
        if not ranks and groups[0].waits:
            body = await self._call("compare", expression=ATTRIBUTES)
            ranks = began(circle, of_attributes(body.get("values", ())))
        at = next((one for one in groups if ranks and ranks_in(ranks) <= ranks_in(one.ranks)), None)
        if at is not None:
            return looked._replace(suspects=[at._replace(ranks=ranks)], others=[], verdict=CIRCLE)
        if looked.verdict == CIRCLE:
            all_of_it = ",".join(map(str, sorted(circle)))
            return looked._replace(suspects=[groups[0]._replace(ranks=all_of_it)])
        return looked

    async def _odd_stacks(self, looked: Looked) -> tuple[Looked, list[str]]:
        """Where ranks are, several times: those wait for nothing that the others wait for."""
        seen: Counter[tuple[str, tuple[Frame, ...]]] = Counter()
        files: list[str] = []
        others: list[At] = []
        for _ in range(LOOKS):
            body = await self._call("stacks")
            files = body.get("files", files)
            stacks = body.get("stacks", ())
            found = merged(cut(At(one["ranks"], frames(one["stack"], files))) for one in stacks)
            if found and not found[0].waits:
                stack = found[0].stack
                seen.update((found[0].ranks, stack[:end]) for end in range(1, len(stack) + 1))
                others = found[1:] or others
        if not seen:
            return looked, files
        most = max(seen.values())
        enough = [one for one, times in seen.items() if times * 2 > most]
        ranks, stack = max(enough, key=lambda one: len(one[1]))
        return looked._replace(suspects=[At(ranks, stack)], others=others), files

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
        for _ in range(WAITS):
            if body.get("state") == "still running":
                body = await self._call("wait_for_stop") or body
        return body

    async def _of_exception(self, held: Mapping[str, str], text: str) -> Named:
        """Of a rank that an exception holds, where that is raised in the program's own code."""
        body = await self._call("stacks", ranks=held["ranks"])
        files = body.get("files", [])
        stack = next((frames(one["stack"], files) for one in body.get("stacks", ())), ())
        path, line = held.get("path", ""), int(held.get("place", "").rpartition(":")[2] or 0)
        if stack:
            path = next(each for each in files if each.endswith(f"/{stack[-1].file}"))
            line = stack[-1].line
        program = await self._source(path)
        if PEER_IS_GONE.search(text):
            return Named(held["ranks"], path, line, "early exit")
        cause = cause_of_exception(f"{text} {program.text(line)}")
        loops = [block for block, _ in program.branches(line) if isinstance(block, ast.For)]
        if cause == "dead worker" and loops:  # a signal tells of it, whatever the line
            line = loops[-1].lineno
        return Named(held["ranks"], path, line, cause)

    # A wrong value

    async def _wrong(self, watch: str, at: str) -> Named:
        body = await self._call("lease", action="take")
        path = next((one["path"] for one in body.get("stopped", ()) if one.get("path")), "")
        if not path:
            path = next(iter((await self._call("stacks")).get("files", ())), "")
        program = await self._source(path)
        line = next((n for n, text in enumerate(program.lines, 1) if at and at in text), 0)
        values = await self._until_odd(f"{path}:{line}", watch, line, program)
        odd, watched = _odd(values), values.get(watch, {})
        if not odd and (repeated := repeated_ranks(watched)):
            odd = {watch: repeated, **{n: r for n, v in values.items() if (r := repeated_ranks(v))}}
        if not odd:
            return self._of_all(watch, watched, line, path, program)
        return await self._from(odd, values, line, path, program)

    async def _until_odd(
        self, place: str, watch: str, line: int, program: Program
    ) -> dict[str, Body]:
        """Stop where the user looks, and again where values differ or are NaN in some ranks."""
        names = names_for(watch, line, program, MOST_NAMES)
        first = await self._values(place, names)
        watched = first.get(watch, {})
        if _odd(first) or not watched or repeated_ranks(watched):
            return first
        if not watched.get("differs"):
            return await self._values(place, names, condition=watch, mode="differ") or first
        later = await self._values(place, names, condition=f"({watch}) != ({watch})")
        if not _odd(later):  # perhaps it drifts away from the others'
            await self._call("breakpoints", action="set", place=place)
            later = _watched(await self._call("wait_for_stop"), place)
        return later if _odd(later) else first

    @staticmethod
    def _of_all(
        watch: str, watched: Mapping[str, Any], line: int, path: str, program: Program
    ) -> Named:
        """Of a value that no two ranks share, or all: where what it is of has begun."""
        ranks = all_ranks(watched)
        root = watch.partition(".")[0].partition("[")[0]
        made = program.assignments(root, line)
        line = made[0].lineno if made else program.rank_dependent(line) or line
        cause = cause_of_all(watched) if ranks else "wrong data"
        if cause == "missed sync":  # where it is switched off, else what it was set up for
            line = program.says(NO_SYNC) or program.says(f"{WRAPPER}(") or line
        return Named(ranks, path, line, cause)

    async def _values(self, place: str, names: list[str], **more: str) -> dict[str, Body]:
        """Stop ranks at a place; what they have there, by expression.

        Where some alone come to it, what these have is odd.
        """
        if more:
            await self._call("breakpoints", action="set", place=place, **more)
        way = {"action": "continue"} if more else {"action": "until", "place": place}
        body = await self._call("go", watch=names, wait=WAIT_S, **way)
        alone = "condition" in more and "mode" not in more
        body = body if alone else await self._moved(body)
        found = _watched(body, place)
        if body.get("others") and alone and names[0] in found:
            found[names[0]]["outliers"] = ",".join(one["ranks"] for one in body["stopped"])
        return found

    async def _from(
        self,
        odd: dict[str, str],
        values: Mapping[str, Body],
        line: int,
        path: str,
        program: Program,
    ) -> Named:
        """Follow an odd value back to the statement that made it, into functions too."""
        ranks = next(iter(odd.values()))
        nan = any(map(is_strange, values.values()))
        _, node = root_of(odd, line, program)
        if node is not None:
            node = program.changed_by(node) or made_by_rank(node, values, program) or node
        function = entered(node, program)
        while function and self._calls <= MOST_CALLS - 2:
            body = ast.Module(program.functions[function].body, [])
            last = max(each.lineno for each in ast.walk(body) if isinstance(each, ast.stmt))
            inner = names_for(_shown(program, last), last, program, MOST_NAMES)
            values = await self._values(f"{path}:{last}", inner)
            found = _odd(values)
            if not found:
                break
            _, inside = root_of(found, last, program)
            nan = nan or any(map(is_strange, values.values()))
            node = inside or program.statement(last)
            function = entered(node, program)
        if function and node is not None:
            told = program.by_rank_in(function, ranks_in(ranks), SIZE)
            node = program.statement(told) or node
        cause = cause_of_value(node, program, nan=nan)
        return Named(ranks, path, node.lineno if node is not None else line, cause)


def _watched(body: Body, place: str) -> dict[str, Body]:
    """Return the watched expressions of ranks that are stopped at a place."""
    if not any(place.endswith(f"/{one['place']}") for one in body.get("stopped", ())):
        return {}
    return {one["expression"]: one for one in body.get("watches", ())}


def _odd(values: Mapping[str, Body]) -> dict[str, str]:
    """Return the ranks with odd values, by expression."""
    return {name: ranks for name, one in values.items() if (ranks := odd_ranks(one))}


def _shown(program: Program, line: int) -> str:
    """Return what a function returns, as an expression."""
    node = program.statement(line)
    return ast.unparse(node.value) if isinstance(node, ast.Return) and node.value else "None"
