"""With one rank behind it, a session answers as debugpy does, in everything that editors ask.

Each conversation is held with debugpy alone and with a session over it. What may differ is written
down here, and in docs/internals/conformance.md with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import Connect
from tests.real.debugging.side_by_side import Conversation, Diary, Talk, both

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(120)]

# Events that only debugpy sends: the first before any client has introduced itself; a session
# does not tell the ports of its ranks' adapters.
ONLY_DEBUGPY: Final = ("debugpyWaitingForServer", "debugpySockets")


def telling(diary: Diary) -> list[str]:
    """Return the events that must be the same."""
    return sorted(e for e in diary.events.elements() if not e.startswith(ONLY_DEBUGPY))


# Breakpoints


async def conditions(talk: Talk) -> None:
    body, after = talk.line("body"), talk.line("after")
    await talk.begin({"line": body, "condition": "number == 4"}, after)
    await talk.evaluate("number", "total")
    await talk.move()
    await talk.breakpoints()
    await talk.run_out()


async def hit_counts(talk: Talk) -> None:
    body = talk.line("body")
    await talk.begin({"line": body, "hitCondition": "== 3"})
    await talk.evaluate("number")
    for hits in ("> 2", "% 4", "5", ">= 3", "<= 2", "< 2", "!= 1"):
        await talk.breakpoints({"line": body, "hitCondition": hits})
    await talk.breakpoints(talk.line("after"))
    await talk.move()
    await talk.breakpoints()
    await talk.run_out()


async def log_points(talk: Talk) -> None:
    body = talk.line("body")
    message = {"line": body, "logMessage": "number {number} of {total} {{escaped}} {absent}"}
    await talk.begin({**message, "condition": "number < 2"}, talk.line("again"))
    await talk.breakpoints()
    await talk.run_out()


async def broken_conditions(talk: Talk) -> None:
    body, after = talk.line("body"), talk.line("after")
    await talk.begin({"line": body, "condition": "number ="}, after)
    await talk.breakpoints({"line": body, "condition": "1 / 0"}, talk.line("again"))
    await talk.move()
    await talk.breakpoints()
    await talk.run_out()


async def places(talk: Talk) -> None:
    await talk.begin(talk.line("again"))
    await talk.breakpoints(1, 2, 1000, talk.line("body"))
    await talk.breakpoints(talk.line("after"))
    await talk.ask("setFunctionBreakpoints", breakpoints=[{"name": "loop"}, {"name": "absent"}])
    await talk.move()
    await talk.ask("setFunctionBreakpoints", breakpoints=[])
    await talk.breakpoints()
    await talk.run_out()


# Values


async def variables(talk: Talk) -> None:
    await talk.begin(talk.line("here"))
    found = await talk.locals()
    for name in ("point", "items", "pair", "unique", "table"):
        await talk.ask("variables", variablesReference=found[name])
    await talk.ask("variables", variablesReference=found["items"], start=10, count=5)
    await talk.ask("variables", variablesReference=found[""], format={"hex": True})
    await talk.evaluate("number", "table", "long", format={"hex": True})
    for name, value in (("number", "7"), ("text", "'new'"), ("number", "absent"), ("no", "1")):
        await talk.ask("setVariable", variablesReference=found[""], name=name, value=value)
    await talk.ask("setVariable", variablesReference=found["point"], name="x", value="30")
    for expression, value in (("point.y", "5"), ("items[0]", "9"), ("1", "2"), ("x +", "1")):
        await talk.ask("setExpression", expression=expression, value=value, frameId=talk.frame)
    await talk.evaluate("point", "items[:2]")
    await talk.run_out()


async def evaluation(talk: Talk) -> None:
    await talk.begin(talk.line("here"))
    for context in ("watch", "hover", "repl", "clipboard", "variables"):
        await talk.evaluate("point", "table", "odd", "absent", "1 +", "wörter", context=context)
    statements = ("import math", "extra = 3", "extra + number", "for i in range(2): print(i)", "_")
    await talk.evaluate(*statements, context="repl")
    await talk.evaluate("long", "items", context="clipboard")
    await talk.evaluate("raise ValueError('own')", "point.broken", "print('said')", context="repl")
    await talk.refused("evaluate", expression="number", frameId=987654, context="watch")
    await talk.run_out()


async def completion(talk: Talk) -> None:
    await talk.begin(talk.line("here"))
    for text, column in (("num", 4), ("point.", 7), ("x = point.s", 12), ("", 1), ("a\npoi", 4)):
        await talk.ask("completions", text=text, column=column, frameId=talk.frame)
    await talk.ask("completions", text="poi", column=4, line=1, frameId=talk.frame)
    await talk.ask("completions", text="prin", column=5)
    await talk.run_out()


async def return_values(talk: Talk) -> None:
    await talk.begin(talk.line("call"), showReturnValue=True)
    await talk.move("next")
    await talk.locals()
    await talk.run_out()


async def presentation(talk: Talk) -> None:
    shown = {"special": "inline", "function": "hide", "class": "group", "protected": "inline"}
    await talk.begin(talk.line("here"), variablePresentation=shown)
    found = await talk.locals()
    await talk.ask("variables", variablesReference=found["point"])
    names = {"module": True, "line": True, "parameters": True, "parameterNames": True}
    await talk.ask("stackTrace", threadId=talk.thread, format=names)
    await talk.ask("stackTrace", threadId=talk.thread, startFrame=1, levels=1)
    await talk.run_out()


# Exceptions


async def raised(talk: Talk) -> None:
    await talk.begin(filters=["raised"])
    for _ in range(2):
        await talk.ask("exceptionInfo", threadId=talk.thread)
        await talk.move()
    await talk.ask("setExceptionBreakpoints", filters=[])
    await talk.run_out()


async def uncaught(talk: Talk) -> None:
    await talk.begin(filters=["uncaught"])
    await talk.ask("exceptionInfo", threadId=talk.thread)
    await talk.locals()
    await talk.run_out()


async def user_unhandled(talk: Talk) -> None:
    await talk.begin(filters=["userUnhandled"], justMyCode=True)
    await talk.ask("exceptionInfo", threadId=talk.thread)
    await talk.ask("setExceptionBreakpoints", filters=[])
    await talk.run_out()


async def exception_options(talk: Talk) -> None:
    path = [{"names": ["Python Exceptions"]}, {"names": ["KeyError"]}]
    options = [{"path": path, "breakMode": "always"}]
    await talk.begin(talk.line("library"))
    await talk.ask("setExceptionBreakpoints", filters=[], exceptionOptions=options)
    await talk.ask("setExceptionBreakpoints", filters=["raised"], exceptionOptions=[])
    await talk.move()
    await talk.ask("exceptionInfo", threadId=talk.thread)
    await talk.ask("setExceptionBreakpoints", filters=["absent"])
    await talk.ask("setExceptionBreakpoints", filters=[])
    await talk.run_out()


async def system_exit(talk: Talk) -> None:
    await talk.begin(filters=["uncaught"])
    await talk.ask("exceptionInfo", threadId=talk.thread)
    await talk.run_out()


async def clean_exit(talk: Talk) -> None:
    """From a stop: of a rank that attaches and ends within one look, no row is reported."""
    await talk.attach(talk.line("caught"), filters=["uncaught"])
    await talk.stop()
    await talk.go()
    await talk.end()


# Steps


async def steps(talk: Talk) -> None:
    await talk.begin(talk.line("first"))
    for command in ("stepIn", "stepIn", "stepOut", "next", "stepOut", "next", "next"):
        await talk.move(command)
    await talk.run_out()


async def step_targets(talk: Talk) -> None:
    await talk.begin(talk.line("outer"))
    targets = (await talk.ask("stepInTargets", frameId=talk.frame))["targets"]
    await talk.move("stepIn", targetId=targets[-1]["id"])
    await talk.breakpoints()
    await talk.move("stepIn", granularity="line")
    await talk.run_out()


async def my_code_alone(talk: Talk) -> None:
    await talk.begin(talk.line("library"), justMyCode=True)
    await talk.move("stepIn")
    await talk.ask("setDebuggerProperty", JustMyCodeStepping=0)
    await talk.breakpoints()
    await talk.run_out()


async def into_library(talk: Talk) -> None:
    await talk.begin(talk.line("library"))
    await talk.move("stepIn")
    await talk.move("stepOut")
    await talk.run_out()


async def jump(talk: Talk) -> None:
    await talk.begin(talk.line("jump start"))
    asked = {"source": {"path": talk.program}, "line": talk.line("jump end")}
    targets = (await talk.ask("gotoTargets", **asked))["targets"]
    await talk.ask("goto", threadId=talk.thread, targetId=targets[0]["id"])
    await talk.stop()
    await talk.evaluate("count")
    await talk.refused("goto", threadId=talk.thread, targetId=987654)
    await talk.run_out()


# Threads


async def threads(talk: Talk) -> None:
    await talk.begin(talk.line("ask"))
    await talk.ask("threads")
    await talk.breakpoints(talk.line("answer"))
    await talk.move()
    await talk.breakpoints(talk.line("heard"))
    await talk.move("stepOut")
    await talk.breakpoints()
    await talk.run_out()


async def step_that_waits(talk: Talk) -> None:
    """The step cannot end before another thread runs, and it may not: `continue` lets it."""
    await talk.begin(talk.line("ask"), steppingResumesAllThreads=False)
    await talk.breakpoints(talk.line("wait"))
    await talk.move()
    await talk.breakpoints()
    await talk.go("next")
    await talk.run_out()


async def pause(talk: Talk) -> None:
    """Where a pause hits differs; that it does, and what may be done then, does not."""
    await talk.begin(talk.line("count"))
    await talk.breakpoints()
    await talk.go()
    await talk.ask("pause", threadId=talk.thread)
    await talk.client.wait_event("stopped", lambda body: body["reason"] == "pause")
    stack = await talk.client.request("stackTrace", {"threadId": talk.thread})
    talk.frame = stack["stackFrames"][0]["id"]
    await talk.evaluate("__import__('__main__').stop = True", context="repl")
    await talk.run_out()


async def leaving(talk: Talk) -> None:
    """A client that leaves while the program is stopped lets it run to its end."""
    await talk.begin(talk.line("body"))
    await talk.client.disconnect(terminateDebuggee=False)
    talk.note()


# Output and files


async def output(talk: Talk) -> None:
    await talk.begin(talk.line("last"))
    await talk.run_out()


async def sources(talk: Talk) -> None:
    await talk.begin(talk.line("library"))
    await talk.move("stepIn")
    await talk.refused("source", sourceReference=987654)
    await talk.ask("modules")
    await talk.ask("modules", startModule=0, moduleCount=1)
    await talk.breakpoints()
    await talk.run_out()


async def mapped(talk: Talk) -> None:
    """The program's folder has another name here; what lies elsewhere has none, and is read."""
    folder = str(Path(talk.program).parent)
    mappings = [{"localRoot": "/elsewhere", "remoteRoot": folder}]
    await talk.client.request("initialize", {"adapterID": "test", "clientID": "vscode"})
    attached = talk.client.send("attach", {"pathMappings": mappings, "justMyCode": False})
    await talk.client.wait_event("initialized")
    path = f"/elsewhere/{Path(talk.program).name}"
    line = [{"line": talk.line("library")}]
    await talk.ask("setBreakpoints", source={"path": path}, breakpoints=line)
    await talk.ask("configurationDone")
    assert (await attached)["success"]
    await talk.stop()
    await talk.go("stepIn")
    await talk.client.wait_event("stopped")
    body = await talk.client.request("stackTrace", {"threadId": talk.thread})
    talk.diary.answers.append(
        str([bool(f["source"]["sourceReference"]) for f in body["stackFrames"]])
    )
    library = body["stackFrames"][0]["source"]
    if library["sourceReference"]:
        await talk.ask("source", sourceReference=library["sourceReference"], source=library)
    await talk.ask("setBreakpoints", source={"path": path}, breakpoints=[])
    await talk.run_out()


async def early_properties(talk: Talk) -> None:
    """A debugger property may be set between `initialized` and `configurationDone`."""
    await talk.client.request("initialize", {"adapterID": "test", "clientID": "vscode"})
    attached = talk.client.send("attach", {"justMyCode": True})
    await talk.client.wait_event("initialized")
    await talk.ask("setDebuggerProperty", JustMyCodeStepping=1)
    await talk.breakpoints(talk.line("again"))
    await talk.ask("configurationDone")
    assert (await attached)["success"]
    await talk.stop()
    await talk.run_out()


CONVERSATIONS: Final[dict[str, Sequence[Conversation]]] = {
    "breakpoints": (
        conditions,
        hit_counts,
        log_points,
        broken_conditions,
        places,
        leaving,
        early_properties,
    ),
    "values": (variables, evaluation, completion, return_values, presentation),
    "exceptions": (raised, uncaught, user_unhandled, exception_options),
    "steps": (steps, step_targets, my_code_alone, into_library, jump, sources, mapped),
    "threads": (threads, step_that_waits),
    "output": (output,),
    "endless": (pause,),
}
ROWS: Final = [(name, one) for name, rows in CONVERSATIONS.items() for one in rows]


def difference(direct: Sequence[str], merged: Sequence[str]) -> str:
    """Return the lines that differ, marked as by diff; the session's with a plus."""
    return "\n".join(unified_diff(direct, merged, "debugpy", "session", n=0, lineterm=""))


def check(direct: Diary, merged: Diary) -> None:
    """Compare what both clients were told."""
    for before, after in (
        (direct.answers, merged.answers),
        (telling(direct), telling(merged)),
        (
            [f"{name}: {text!r}" for name, text in sorted(direct.output.items())],
            [f"{name}: {text!r}" for name, text in sorted(merged.output.items())],
        ),
    ):
        if difference(before, after):
            pytest.fail(difference(before, after), pytrace=False)
    assert merged.exit_code == direct.exit_code


@pytest.mark.parametrize(("program", "conversation"), ROWS, ids=lambda x: getattr(x, "__name__", x))
async def test_as_debugpy_alone(program: str, conversation: Conversation, connect: Connect) -> None:
    check(*await both(connect, f"beside/{program}", conversation))


@pytest.mark.parametrize(
    ("code", "conversation"), [("3", system_exit), ("0", clean_exit)], ids=["failure", "success"]
)
async def test_exit_codes(code: str, conversation: Conversation, connect: Connect) -> None:
    check(*await both(connect, "beside/exceptions", conversation, [code]))
