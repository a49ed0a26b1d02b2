"""Attributes of debugpy's own configurations: what is done with them, or why they are refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dap_mux.errors import UsageError

Arguments = Mapping[str, Any]
INTERNAL: Final = "internalConsole"
_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?(?P<name>[^\s=#]+)\s*=\s*(?P<value>.*)")
_QUOTED: Final = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)")
_COMMENT: Final = re.compile(r"(?:^|\s+)#.*")


def refuse_attach_attributes(arguments: Arguments) -> None:
    """Refuse what an `attach` request cannot have. Raises UsageError."""
    if arguments.get("processId"):
        raise UsageError(
            "`processId`: ranks are not injected into running processes; start them with "
            "`dap-mux run`, or let each call debugpy.listen() and name them by `endpoints`"
        )
    if arguments.get("listen"):
        raise UsageError(
            "`listen`: an attach configuration does not wait for ranks; use "
            "`dap-mux attach dial:N` for N ranks that connect to the session"
        )


def refuse_launch_attributes(arguments: Arguments) -> None:
    """Refuse what a `launch` request cannot have. Raises UsageError."""
    if arguments.get("console") not in (None, INTERNAL):
        raise UsageError(
            f"`console` must be '{INTERNAL}': ranks have no terminal each; for a job in a "
            "terminal, type `dap-mux run` there, and the window joins it"
        )
    if arguments.get("sudo"):
        raise UsageError("`sudo`: ranks run as the user of the editor")


def python_arguments(arguments: Arguments) -> tuple[str, ...]:
    """Return the arguments for Python itself. Raises UsageError."""
    words = arguments.get("pythonArgs") or []
    if isinstance(words, str):
        try:
            words = shlex.split(words)
        except ValueError as error:
            raise UsageError(f"`pythonArgs` {words!r}: {error}") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"`pythonArgs` must be a list of strings, not {words!r}")
    return tuple(words)


def added_variables(arguments: Arguments, folder: Path) -> dict[str, str | None]:
    """Return the variables of `envFile`, relative to `folder`, and of `gevent`."""
    found: dict[str, str | None] = {}
    if name := arguments.get("envFile"):
        try:
            text = (folder / str(name)).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise UsageError(f"`envFile` {name}: {error}") from error
        found.update(_assignments(text))
    if arguments.get("gevent"):
        found["GEVENT_SUPPORT"] = "True"  # pydevd's own
    return found


def _assignments(text: str) -> dict[str, str]:
    """Parse NAME=VALUE lines, as in a .env file: quotes, comments and `export` are allowed."""
    matches = (_ASSIGNMENT.match(line.strip()) for line in text.splitlines())
    return {found["name"]: _value(found["value"]) for found in matches if found}


def _value(text: str) -> str:
    quoted = _QUOTED.match(text)
    return quoted["text"] if quoted else _COMMENT.sub("", text).strip()
