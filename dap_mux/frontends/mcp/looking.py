"""The tools that look: they pause no rank, and need no lease."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple

from dap_mux.frontends.console.session_client import stacks_in
from dap_mux.frontends.mcp.answers import Body, Unable, part_without_secrets
from dap_mux.frontends.mcp.link import Link, Links, Ways, chosen
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets.rank_rows import count_text
from dap_mux.rank.redaction import kind_of

MAX_FRAMES: Final = 12
"""The innermost ones of a stack; `path` of the rank's row leads to the others."""
MAX_PIECE: Final = 4000
MAX_REPR: Final = 65_535
"""Characters after which debugpy cuts a value; `offset` leads to the others."""
MARGIN: Final = 4000
"""Characters beside a part of a value in which a secret may begin or end."""
MAX_AROUND: Final = 60
MAX_NAMES: Final = 20
NAMES: Final = (
    "'\\n'.join(f'{k}: {t}' for k, v in {**locals()}.items() for t in [type(v).__name__] "
    "if k[:2] != '__' and t not in ('module', 'function', 'type'))"
)
"""In a rank: the variables of the frame that it is stopped in."""
PIECE: Final = (
    "(lambda t: '%d %d %s' % (len(t), __import__('zlib').crc32(t.encode('utf-8', 'replace')), "
    "t[{offset}:{end}]))(repr({name}))"
)
"""In a rank: a part of a text, with what tells the whole text from another rank's; as one text,
because debugpy cuts those in a tuple."""


class Looking:
    """Each method is a tool; its docstring is what the agent reads."""

    def __init__(self, links: Links, ways: Ways) -> None:
        self._links = links
        self._ways = ways

    async def status(self, session: str = "", ranks: str = "all") -> Body:
        """Sessions of this user, and the ranks of one: where they are, folded, and their states.

        `session` (HOST:PORT) is only needed where several run. `ranks` is a rank set: `0-3`,
        `stopped`, `all`, `dp=0`.
        """
        names = self._links.names()
        if not names and not self._links.all:
            return {"sessions": [], "next": "start runs a job, or attaches to one"}
        if not session and not self._links.default and len(names) > 1:
            return {"sessions": names, "next": "pass one of them as `session`"}
        link = await self._links.of(session)
        rows = await link.rows(ranks)
        states = [str(row["state"]) for row in rows]
        ended = link.client.ended.is_set()
        why = {"ended": link.client.end_reason}
        driver = why if ended else {"lease": await link.ask("lease", {})}
        return {
            "sessions": names,
            "session": link.session.address,
            "counts": count_text({each: states.count(each) for each in sorted({*states})}),
            "agent": "drives" if link.drives else "looks",
            **driver,
            "ranks": link.folded(rows),
        }

    async def why(self, session: str = "", ranks: str = "all", slow: bool = False) -> Body:
        """Why the job does not move on: verdict, the ranks at fault with their stacks, evidence.

        Ask this first of a job that hangs. No rank is paused; it takes one to five seconds.
        `slow`: of a job that moves on slowly: which rank makes the others wait; 5 to 25 seconds.
        """
        link = await self._links.of(session)
        body = await self._ways.why(link.session, chosen(ranks), slow=slow)
        suspects: dict[tuple[str, ...], list[str]] = {}
        for one in body["suspects"]:
            stack = (_frame(frame) for frame in one["stack"][:MAX_FRAMES])
            suspects.setdefault((one["waitingFor"], *stack), []).append(one["ranks"])
        folded = [
            {"ranks": link.folded_names(names), "waitingFor": waiting, "stack": stack}
            for (waiting, *stack), names in suspects.items()
        ]
        frames = (frame for one in body["suspects"] for frame in one["stack"])
        return {**body, "suspects": folded, "files": _own_files(frames)}

    async def stacks(
        self,
        session: str = "",
        ranks: str = "all",
        threads: Literal["main", "all"] = "main",
        library: bool = False,
    ) -> Body:
        """Where ranks are now, running or stopped; equal stacks once, innermost frame first.

        `library`: with the frames of installed packages.
        """
        link = await self._links.of(session)
        rows = await link.rows(ranks)
        body = await self._ways.stacks_outside(rows, every_thread=threads == "all")
        if body is None:
            body = await link.ask("stacks", {"ranks": chosen(ranks), "threads": threads})
        found = [
            {"ranks": at, "thread": thread["name"], "stopped": stopped, "stack": stack}
            for thread in body["threads"]
            for at, stopped, stack in ends_of(thread, library=library)
        ]
        frames = (
            frame
            for thread in body["threads"]
            for _, stack in stacks_in(thread["branches"])
            for frame in stack
        )
        return {"stacks": found, "missing": body["missing"], "files": _own_files(frames)}

    async def compare(
        self, expression: str, session: str = "", ranks: str = "all", tolerance: float = 0.0
    ) -> Body:
        """A Python expression in every rank: equal values once, outliers marked, statistics.

        Running ranks answer too, in the globals of `__main__`. `tolerance` is relative.
        """
        link = await self._links.of(session)
        await link.debugged(ranks)
        asked = {"expression": expression, "ranks": chosen(ranks), "tolerance": tolerance}
        return {"expression": expression, **await link.ask("compare", asked)}

    async def values(
        self,
        names: list[str] | None = None,
        session: str = "",
        ranks: str = "all",
        offset: int = 0,
        length: int = 1000,
    ) -> Body:
        """Variables of the selected frames: without `names` which there are, else their values.

        `names` may be expressions. `offset` and `length` (characters) choose a part of a long one.
        """
        link = await self._links.of(session)
        await link.debugged(ranks)
        if not names:
            body = await link.ask("cast", {"ranks": chosen(ranks), "command": f"p {NAMES}"})
            return {"names": [_names(one) for one in body["results"]], **_failures(body)}
        if offset < 0 or not 0 < length <= MAX_PIECE:
            raise UsageError(f"offset: 0 or more; length: 1 to {MAX_PIECE} characters")
        if len(names) > MAX_NAMES:
            raise UsageError(f"names: at most {MAX_NAMES} at a time, not {len(names)}")
        return {"values": [await self._value(link, each, ranks, offset, length) for each in names]}

    async def _value(self, link: Link, name: str, ranks: str, offset: int, length: int) -> Body:
        if (
            offset and not self._ways.show_secrets and (secret := kind_of(name))
        ):  # a part of it would not be told from others
            raise Unable("refused", f"{name} is redacted: {secret}")
        margin = 0 if self._ways.show_secrets else MARGIN
        first, end = max(0, offset - margin), offset + length + margin
        piece = PIECE.format(offset=first, end=end, name=name)
        command = f"p {piece}" if offset else f"p {name}"
        body = await link.ask("cast", {"ranks": chosen(ranks), "command": command})
        part = _Part(offset - first, length, margin, parse=bool(offset))
        results = [part.of(one) for one in body["results"]]
        return {"name": name, "results": results, **_failures(body)}

    async def source(
        self, path: str = "", line: int = 0, around: int = 10, session: str = "", ranks: str = "all"
    ) -> Body:
        """Numbered lines round a place; without `path` where the first of `ranks` is stopped."""
        link = await self._links.of(session)
        if not path or not line:
            rows = [row for row in await link.rows(ranks) if row["path"]]
            if not rows:
                raise Unable("no-place", "none of these ranks is stopped: pass `path` and `line`")
            path, line = path or str(rows[0]["path"]), line or int(rows[0]["line"])
        if PurePath(path).suffix not in (".py", ".pyi", ".pyx"):
            raise Unable("bad-argument", f"{path}: only sources of Python are shown")
        lines = (await link.client.source_text(path)).splitlines()
        around = min(max(around, 0), MAX_AROUND)
        first = max(1, line - around)
        shown = islice(enumerate(lines, 1), first - 1, line + around)
        return {
            "path": path,
            "line": line,
            "of": len(lines),
            "source": [f"{number}: {each}" for number, each in shown],
        }

    async def output(
        self, since: int = 0, ranks: str = "", text: str = "", session: str = ""
    ) -> Body:
        """What ranks printed since the agent looked at the session first; equal lines once.

        Each line has a number: pass the last one seen as `since`. `ranks` (as in the line's
        `[0-3]`) and `text` choose lines that contain them.
        """
        link = await self._links.of(session)
        mark = f"[{ranks}] " if ranks else ""
        lines = [
            {"n": number, "category": category, "text": line}
            for number, category, line in link.printed.after(since)
            if line.startswith(mark) and text in line
        ]
        return {"last": link.printed.last, "lines": lines}


def _frame(frame: Body) -> str:
    return f"{PurePath(frame['path']).name}:{frame['line']} {frame['name']}"


def _own_files(frames: Iterable[Body]) -> list[str]:
    """Return the paths of the program's own files, as `source` and `breakpoints` take them."""
    return list(dict.fromkeys(each["path"] for each in frames if not each["library"]))


def ends_of(thread: Body, *, library: bool = False) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the ranks of each stack of a thread, those that are stopped, the frames inside out."""
    for end, frames in stacks_in(thread["branches"]):
        own = [each for each in frames if library or not each["library"]] or frames
        inner = [_frame(each) for each in reversed(own[-MAX_FRAMES:])]
        yield end["ends"], end["stopped"], inner


def _failures(body: Body) -> Body:
    kept = {key: body[key] for key in ("errors", "missing", "outliers") if body.get(key)}
    running = f"{body['inMain']} run: asked in the globals of __main__" if body["inMain"] else ""
    return {**kept, **({"note": running} if running else {})}


def _literal(text: str) -> Any:
    """Return the value of a repr, the text itself where it is none."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text)
    return text


def _names(result: Body) -> Body:
    return {"ranks": result["ranks"], "names": str(_literal(result["value"])).splitlines()}


class _Part(NamedTuple):
    """Which part of a value is shown, of what has come. `parse`: an answer to `PIECE`."""

    start: int
    length: int
    margin: int
    parse: bool

    def of(self, result: Body) -> Body:
        """Return a value's part; `of`: how many characters there are, where that is more."""
        one = {"ranks": result["ranks"], "outlier": result["outlier"]}
        found = str(_literal(result["value"])).split(" ", 2) if self.parse else []
        if len(found) == 3 and found[0].isdecimal():
            return {**one, "value": self._shown(found[2]), "of": int(found[0])}
        value = str(result["value"])
        count = len(value)
        whole = f"{MAX_REPR} or more" if count > MAX_REPR else count
        more = {"of": whole} if count > self.length else {}
        return {**one, "type": result["type"], "value": self._shown(value), **more}

    def _shown(self, text: str) -> str:
        end = self.start + self.length
        if self.margin and len(text) > self.length:  # lest half a secret be taken for none
            return part_without_secrets(text[: end + self.margin], self.start, end)
        return text[self.start : end]
