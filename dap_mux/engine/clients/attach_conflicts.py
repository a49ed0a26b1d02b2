"""Attributes that a joining client asks for and does not get, in plain words.

One session has one set of attributes for its ranks: those of its first controller. Where the
client's files are is its own matter (`translation_setup`), and so is what only its editor acts on.
"""

from __future__ import annotations

from typing import Any, Final

from dap_mux.engine.state.bodies import Body

# Attributes of one client, or of its editor: they may differ.
PERSONAL: Final = frozenset(
    """clientOS connect console consoleName consoleTitle cwd debugOptions debugServer endpoints env
    envFile events host insecure internalConsoleOptions listen listenAddress logDir name
    pathMappings port postDebugTask preLaunchTask presentation processId purpose python pythonArgs
    pythonPath ranks request role serverReadyAction tlsCa tlsCert tlsKey token tokenFile type
    variablePresentation verbosity workspaceFolder""".split()
)
# The values of attributes that are not given: debugpy's defaults, and ours.
DEFAULTS: Final[Body] = {
    "django": False,
    "jinja": False,
    "justMyCode": True,
    "logToFile": False,
    "redirectOutput": False,
    "showReturnValue": False,
    "steppingResumesAllThreads": True,
    "stopOnEntry": False,
    "subProcess": False,
}
# An editor names attributes here that it has set by itself.
EDITOR_DEFAULTS: Final = "__defaults"
_SHOWN: Final = (bool, int, float, str, type(None))


def differences(asked: Body, in_force: Body) -> str:
    """Return what to tell a joiner, "" where it gets what it asked for."""
    unsaid = asked.get(EDITOR_DEFAULTS) or ()  # its user has asked for none of them
    names = [name for name in asked if name not in PERSONAL and not name.startswith("__")]
    names = [name for name in names if name not in unsaid]
    force = {**DEFAULTS, **in_force}
    lines = [_line(name, asked[name], force) for name in names if _differs(name, asked, force)]
    if not lines:
        return ""
    about = (
        "dap-mux: the first client of this session has configured it; in effect for all clients:"
    )
    return "".join(f"{line}\n" for line in [about, *lines])


def _differs(name: str, asked: Body, force: Body) -> bool:
    return bool(asked[name] != force.get(name)) and not (not asked[name] and name not in force)


def _line(name: str, asked: Any, force: Body) -> str:
    """Long values are not repeated: they may hold what is nobody else's business."""
    if name not in force:
        return f"  {name} is not set, so yours has no effect"
    if not isinstance(asked, _SHOWN) or not isinstance(force[name], _SHOWN):
        return f"  {name} differs from your configuration"
    return f"  {name} is {_word(force[name])}, not {_word(asked)} as in your configuration"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value!s:.60}"
