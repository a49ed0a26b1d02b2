"""Which function of `dap_mux.rank.injected` an expression of the engine calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dap_mux.engine.job_insight.gather_evidence import SAMPLE
from dap_mux.engine.job_insight.slow_ranks import BEGIN, TOLD
from dap_mux.engine.ranks.patching import attach_expression
from dap_mux.pure.remote import call
from dap_mux.session.session import injected_sources

INJECTED: Final = injected_sources()


class InjectedCall(NamedTuple):
    """`text`: the arguments, as they are written."""

    module: str
    function: str
    text: str

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments, which are literals."""
        values: tuple[Any, ...] = ast.literal_eval(f"({self.text})")
        return values


def _heads() -> Iterator[tuple[str, tuple[str, str]]]:
    """The text in front of the arguments for every function that can be called."""
    for module, source in INJECTED.all.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                yield call(source, node.name).removesuffix(")"), (module, node.name)


_BUNDLE: Final = INJECTED.bundles["evidence"]
EVIDENCE: Final = {
    _BUNDLE.ask(SAMPLE): InjectedCall("evidence", "ask", ""),
    _BUNDLE.bring(SAMPLE, compiled=True): InjectedCall("evidence", "bring", "bytecode"),
    _BUNDLE.bring(SAMPLE): InjectedCall("evidence", "bring", "source"),
    _BUNDLE.ask(BEGIN): InjectedCall("evidence", "begin", ""),
    _BUNDLE.ask(TOLD): InjectedCall("evidence", "told", ""),
}
_LOCALS: Final = re.compile(r"own\['local_values'\]\(own\['sent'\], (\[.*?\]), ")
_ARRAY: Final = re.compile(r"own\['view'\].*\)\(\((?P<text>.*)\n\), (?P<asked>\{.*\})\)", re.DOTALL)
_HEADS: Final = dict(_heads())


@lru_cache(maxsize=1024)
def injected_call(expression: str) -> InjectedCall | None:
    """Take an expression apart; None for one that calls none of ours."""
    if expression in EVIDENCE:
        return EVIDENCE[expression]
    if match := _LOCALS.search(expression):
        form = "bring" if "'sent': " in expression else "ask"
        return InjectedCall("local_values", form, f"{match[1]},")
    if match := _ARRAY.search(expression):
        return InjectedCall("array_view", "view", f"{match['text']!r}, {match['asked']}")
    for head, (module, function) in _HEADS.items():
        if expression.startswith(head):
            return InjectedCall(module, function, expression[len(head) : -1].strip())
    return None


def calls_of(expressions: Iterable[str], module: str, function: str) -> int:
    """How many of these call that function."""
    calls = map(injected_call, expressions)
    return sum(call[:2] == (module, function) for call in calls if call)


def is_patching(expression: str) -> bool:
    """Whether this is what a rank is patched with."""
    return expression in _PATCHES


_PATCHES: Final = {
    attach_expression(INJECTED, debug_children=children, user_threads=threads)
    for children in (False, True)
    for threads in (False, True)
}


def users_text(call: InjectedCall) -> str:
    """The user's expression, which is the one argument."""
    return call.text.removeprefix("(").removesuffix("\n),")


def shown(call: InjectedCall) -> str:
    """A call as transcripts have it."""
    name = _NAMES.get(call[:2], call.function)
    if call[:2] == ("evidence", "bring"):
        name = f"evidence, with {call.text}"
    elif call.module == "local_values":
        name = f"values, {call.function} {', '.join(*call.values)}"
    elif call.module == "array_view":
        text, asked = call.values
        name = f"array {text}, {'cells' if asked['cells'] else 'shape'}"
    elif call.module == "file_probe" or call[:2] == ("torch_state", "look"):
        name = f"{name} {call.values[0]}"
    elif call.function in OF_VALUE:
        name = f"{name} {users_text(call)}"
    elif call.module == "pdb_views":
        name = " ".join([name, *map(str, call.values)])
    elif call == ("timeout_probe", "look", "0,"):
        name = "clocks"
    return f"<{name}>"


OF_VALUE: Final = frozenset({"pp", "source", "whatis"})
_NAMES: Final = {
    ("child_processes", "leave_children_alone"): "no children",
    ("evidence", "ask"): "evidence",
    ("file_probe", "compare"): "file",
    ("file_probe", "read"): "text",
    ("evidence", "begin"): "look",
    ("evidence", "told"): "what it has seen",
    ("pdb_views", "line_text"): "line",
    ("pdb_views", "lines_from"): "lines from",
    ("pdb_views", "list_lines"): "list",
    ("pdb_views", "long_list"): "long list",
    ("timeout_probe", "look"): "clocks, longer",
    ("timeout_probe", "put_back"): "clocks, as before",
    ("torch_state", "look"): "what torch knows of",
    ("torch_state", "meshes"): "its meshes",
}
