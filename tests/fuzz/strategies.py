"""What is said in a fuzzed session: whole requests with one thing wrong, and JSON of any shape."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from dap_mux.engine.events.dispatch import EVENT_TABLE
from dap_mux.engine.messages.routes import ROUTES
from tests.fuzz.world import Said
from tests.support.clients.argument_cases import WRONG, Ids, right

NAMES: Final = sorted(
    {
        *"""breakpoints id verified threads threadId stackFrames source path line column reason name
        output category variablesReference capabilities sockets internal body module subProcessId
        configuration breakpoint result targets variables scopes frameId expression ranks command
        define hitBreakpointIds exceptionId breakMode allThreadsContinued condition""".split()
    }
)
LEAVES: Final = st.one_of(
    st.sampled_from([one for one in WRONG if not isinstance(one, list | dict)]),
    st.integers(-2, 12),
    st.text(max_size=8),
    st.sampled_from(["ranks(0): x", "@all", "ranks(", "0-3,", "%list", "cast all p x", "all loss"]),
)
JSON: Final = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=10,
)
RIGHT: Final = right("/job/train.py")
COMMANDS: Final = sorted(ROUTES)


@st.composite
def requests(draw: st.DrawFn) -> Said:
    """A request whose arguments are right but for some fields, or of any shape."""
    command = draw(st.sampled_from(COMMANDS))
    small = st.integers(0, 40)
    ids = Ids(*(draw(small) for _ in range(5)))
    arguments: Any = dict(RIGHT[command](ids)) if command in RIGHT else {"threadId": ids.thread}
    if draw(st.integers(0, 9)) == 0:
        arguments = draw(JSON)
    else:
        for name in draw(st.lists(st.sampled_from([*sorted(arguments), "x"]), max_size=2)):
            arguments[name] = draw(JSON)
    message = {"type": "request", "command": command, "arguments": arguments}
    return Said(draw(st.integers(0, 7)), message)


@st.composite
def of_ranks(draw: st.DrawFn) -> Said:
    """What a rank says: an event, an answer to something that was asked or not, or a request."""
    kind = draw(st.sampled_from(["event", "event", "response", "response", "request"]))
    message: dict[str, Any] = {"seq": draw(st.integers(0, 99)), "type": kind}
    if kind == "event":
        message |= {"event": draw(st.sampled_from([*sorted(EVENT_TABLE), "x"]))}
    elif kind == "request":
        message |= {"command": draw(st.sampled_from(["startDebugging", "runInTerminal", "x"]))}
        message |= {"arguments": draw(JSON)}
    else:
        message |= {"request_seq": draw(st.integers(0, 30)), "success": draw(st.booleans())}
        message |= {
            "command": draw(st.sampled_from(ANSWERED)),
            "message": draw(st.text(max_size=5)),
        }
    return Said(draw(st.integers(0, 7)), {**message, "body": draw(JSON)}, by_rank=True)


@st.composite
def errors(draw: st.DrawFn) -> Said:
    """What a rank says, but for one place of it."""
    path = draw(st.lists(st.integers(0, 15), min_size=1, max_size=5))
    return Said(draw(st.integers(0, 7)), draw(JSON), by_rank=True, path=tuple(path))


ANSWERED: Final = [
    *("initialize attach evaluate setBreakpoints configurationDone threads stackTrace").split(),
    *("continue next pause scopes variables exceptionInfo disconnect source").split(),
]
ACTION: Final = st.integers(0, 255 * 256).map(Said)
STEPS: Final = st.lists(
    st.one_of(ACTION, ACTION, ACTION, requests(), of_ranks(), errors()), min_size=60, max_size=120
)
