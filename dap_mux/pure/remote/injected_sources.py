"""The modules of `dap_mux.rank.injected` that the engine sends to ranks, and how it calls them.

One that is called by itself comes with each call. A bundle is kept in the rank, on its debugger,
under a name that another version of it has not: compiling `evidence` takes a rank as long as
fifteen samples, and compiling `attach` 0.8 ms at each attach (measured). Bundles are packed, for
every rank's adapter decodes and encodes them: a third of the bytes, and no escapes in them (a
quarter of the time to attach 32, measured).
"""

from __future__ import annotations

import marshal
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from typing import Final
from zlib import compress, crc32

import msgspec

# The name of the file that they are compiled as. pydevd takes files whose names begin like this for
# its own, so a step of the user's does not end in them; `<string>` would be the user's.
FILE_NAME: Final = "<builtin dap_mux>"
# The names of the frame where it is evaluated may be others than Python's own.
PYTHON: Final = "__import__('builtins')"
KEPT: Final = f"{PYTHON}.vars(__import__('pydevd').get_global_debugger())"


class Bundle:
    """Modules that a rank keeps once it has them. The first is run first, and runs the others.

    `value` is an expression for what is wanted of them: `own` are the names of the first, and
    `own['sent']` all of them, as sources or compiled.
    """

    def __init__(self, name: str, sources: Mapping[str, str]) -> None:
        self._name = name
        self._sources = sources
        self._kept_as = f"dap_mux_{name}_{crc32(msgspec.json.encode(sources)):08x}"

    @lru_cache(maxsize=8)  # noqa: B019 - there is one of each name, as long as the process
    def ask(self, value: str) -> str:
        """Return an expression for the value, or where a rank has not kept them for JSON.

        It is `{"lacks": "bytecode"}` where it has our version of Python, else `"source"`: in that
        form it is to be sent them.
        """
        magic = "__import__('importlib.util').util.MAGIC_NUMBER"
        lacks = f"'bytecode' if {magic} == {MAGIC_NUMBER!r} else 'source'"
        return (
            f'(lambda own: {value} if own else \'{{"lacks":"%s"}}\' % ({lacks}))'
            f"({KEPT}.get({self._kept_as!r}))"
        )

    @lru_cache(maxsize=8)  # noqa: B019
    def bring(self, value: str, *, compiled: bool = False) -> str:
        """Return an expression for the value, which brings them for a rank that lacks them.

        `compiled`: as bytecode of this Python, without docstrings.
        """
        run = f"own['sent'][{self._name!r}]"
        if compiled:
            load, packed = "__import__('marshal').loads", marshal.dumps(self._compiled())
        else:
            load, packed = "__import__('json').loads", msgspec.json.encode(self._sources)
            run = f"python.compile({run}, {FILE_NAME!r}, 'exec')"
        text = b64encode(compress(packed, 9)).decode()
        sent = f"{load}(__import__('zlib').decompress(__import__('base64').b64decode({text!r})))"
        return (
            f"(lambda python, kept: (lambda own: {value})(kept.get({self._kept_as!r})"
            f" or (lambda own: (python.exec({run}, own),"
            f" kept.setdefault({self._kept_as!r}, own))[-1])({{'sent': {sent}}})))"
            f"({PYTHON}, {KEPT})"
        )

    def _compiled(self) -> dict[str, object]:
        return {
            name: compile(source, FILE_NAME, "exec", dont_inherit=True, optimize=2)
            for name, source in self._sources.items()
        }


class InjectedSources:
    """The source of each module; the session reads them, for the engine reads no files.

    `folders`: sources by bundle and name; the first of a bundle is the one that is run first.
    """

    def __init__(self, folders: Mapping[str, Mapping[str, str]]) -> None:
        self.all = {name: text for each in folders.values() for name, text in each.items()}
        self.bundles = {name: Bundle(name, sources) for name, sources in folders.items() if name}

    def __getitem__(self, module: str) -> str:
        return self.all[module]


def call(source: str, function: str, *arguments: str) -> str:
    """Return an expression: a function of a module, called in a rank.

    `arguments` are Python themselves: their names are those of the frame where the expression is
    evaluated, which may even have others for builtins (`compile = True`). No name stays behind:
    without a frame, pydevd evaluates in globals of its own.
    """
    given = "".join(f"{argument}, " for argument in arguments)
    return (
        "(lambda builtins, module, *given: (builtins.exec(builtins.compile("
        f"{source!r}, {FILE_NAME!r}, 'exec'), module), module[{function!r}](*given))[1])"
        f"(__import__('builtins'), {{}}, {given})"
    )
