"""What `dap-mux record` is to do: by options, or in a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from dap_mux.frontends.console.breakpoints import Breakpoint, find_file
from dap_mux.pure.errors import UsageError
from dap_mux.rank.redaction import kind_of

DEFAULT_FILE: Final = "report.dapmux"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The options of `record` by their names in the file.

    `breaks`: `FILE:LINE[, CONDITION]`; `traces`: `FILE:LINE` and a text with {expressions}.
    """

    breaks: list[str] = msgspec.field(name="break", default_factory=list)
    traces: list[tuple[str, str]] = msgspec.field(name="trace", default_factory=list)
    compare: list[str] = []
    on_exception: bool = False
    on_hang: str = ""
    to: str = DEFAULT_FILE


def plan_of(table: Mapping[str, object], label: str) -> Plan:
    """Read what is in the file of this name. Raises UsageError."""
    try:
        return msgspec.convert(table, Plan)
    except msgspec.ValidationError as error:
        raise UsageError(f"{label}: {error}") from None


def breakpoints_of(plan: Plan, folders: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return DAP's breakpoints by path; `folders`: of the program. Raises UsageError."""
    found: dict[str, list[dict[str, Any]]] = {}
    texts = [(place, "") for place in plan.breaks]
    for place, text in texts + [(place, _without_secrets(text)) for place, text in plan.traces]:
        location, _, condition = (part.strip() for part in place.partition(","))
        file, _, line = location.rpartition(":")
        if not file or not line.isdecimal():
            raise UsageError(f"{place}: expected FILE:LINE or FILE:LINE, CONDITION")
        path = find_file(file, (), folders)
        if not path:
            raise UsageError(f"{place}: no file {file} here: give its full path")
        one = Breakpoint(0, path, int(line), condition=condition, log=text)
        _ = one.full_condition  # raises where it begins with a wrong rank set
        found.setdefault(path, []).append(one.to_dap())
    return found


def _without_secrets(text: str) -> str:
    """Return the text of a trace; an expression that names a secret is not evaluated."""
    return _BRACES.sub(
        lambda found: f"[redacted: {kind}]" if (kind := kind_of(found[1])) else found[0], text
    )
