"""The job that an editor's `launch` request describes: local ranks, or a launcher."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dap_mux.cluster.launcher import LauncherJob
from dap_mux.cluster.local import LocalJob
from dap_mux.pure.errors import UsageError
from dap_mux.session.replayed_rank import Replay
from dap_mux.system.config import Config

Arguments = Mapping[str, Any]
INTERNAL: Final = "internalConsole"
_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?(?P<name>[^\s=#]+)\s*=\s*(?P<value>.*)")
_QUOTED: Final = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)")
_COMMENT: Final = re.compile(r"(?:^|\s+)#.*")


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
    words = _split("pythonArgs", arguments.get("pythonArgs") or [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"`pythonArgs` must be a list of strings, not {words!r}")
    return tuple(words)


def _split(name: str, words: Any) -> Any:
    """Split text as a shell does; anything else is returned as it is. Raises UsageError."""
    try:
        return shlex.split(words) if isinstance(words, str) else words
    except ValueError as error:
        raise UsageError(f"`{name}` {words!r}: {error}") from error


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


MAX_RANKS: Final = 65_535  # one port for each


def launch_job(config: Config, arguments: Arguments) -> LocalJob:
    """Return the ranks that a `launch` request describes; raise UsageError where it is wrong."""
    refuse_launch_attributes(arguments)
    count = arguments.get("nproc", 1)
    if not isinstance(count, int) or not 1 <= count <= MAX_RANKS:
        raise UsageError(f"`nproc` must be the number of ranks (1 to {MAX_RANKS}), not {count!r}")
    replay = _replay(arguments)
    if replay is not None and count > 1:
        raise UsageError("`replay` is of ranks that were taken: leave `nproc` out")
    python = str(replay.python) if replay and replay.python else ""
    return LocalJob(
        command=replay.command if replay else _program(arguments),
        variables=replay.variables if replay else {},
        world_size=replay.world if replay else count,
        only=replay.ranks if replay else (),
        base_port=config.base_port,
        wait=config.wait,
        stop_on_entry=arguments.get("stopOnEntry") is True,
        log_dir=_log_dir(config),
        python=_python(arguments, python),
        python_args=python_arguments(arguments),
        env=_environment(arguments),
        cwd=_folder(arguments),
        ends_with_us=True,
    )


def launcher_job(config: Config, arguments: Arguments) -> LauncherJob:
    """Return the launcher that a `launch` request describes; raise UsageError where it is wrong.

    The folder of our Python (or of `python`) is searched before PATH, for an editor has not
    activated its environment.
    """
    refuse_launch_attributes(arguments)
    launcher = arguments["launcher"]
    words = tuple(_text("launcher", word) for word in _words(launcher))
    if "nproc" in arguments:
        raise UsageError(
            f"`nproc` is for ranks without a launcher: pass the number of ranks to {words[0]}"
        )
    if python_arguments(arguments):
        raise UsageError("`pythonArgs` is for ranks without a launcher: add them to `launcher`")
    if arguments.get("replay"):
        raise UsageError("`replay` needs no launcher: leave `launcher` out")
    environment = _environment(arguments)
    path = environment.get("PATH") or os.environ.get("PATH") or os.defpath
    environment["PATH"] = f"{Path(_python(arguments)).parent}{os.pathsep}{path}"
    job = LauncherJob(
        command=(*words, *_program(arguments)),
        base_port=config.base_port,
        wait=config.wait,
        stop_on_entry=arguments.get("stopOnEntry") is True,
        output=_log_dir(config) / "launcher.log",
        env=environment,
        cwd=_folder(arguments),
        ends_with_us=True,
    )
    job.program()
    return job


def _words(launcher: object) -> tuple[str, ...]:
    """Split `launcher` as a shell does; a list is used as it is."""
    words = _split("launcher", launcher)
    if not words or not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        raise UsageError(
            f"`launcher` must be a command, such as 'torchrun --nproc-per-node 4', not {launcher!r}"
        )
    return tuple(words)


def _program(arguments: Arguments) -> tuple[str, ...]:
    """Return the program or module, and its arguments."""
    folder, own = _folder(arguments), _own_arguments(arguments.get("args"))
    module, program = arguments.get("module"), arguments.get("program")
    if module:
        return ("-m", _text("module", module), *own)
    if not program:
        raise UsageError("launch needs `program` (a script) or `module`")
    path = os.path.join(folder, str(program))  # noqa: PTH118  (an absolute program wins)
    if not os.path.isfile(path):  # noqa: PTH113
        raise UsageError(f"no such file: {program}")
    return (path, *own)


def _replay(arguments: Arguments) -> Replay | None:
    """Return what a rank's file is replayed by, None where there is none. Raises UsageError."""
    given_files, at, folder = arguments.get("replay"), arguments.get("replayAt"), _folder(arguments)
    if not given_files:
        return None
    listed = given_files if isinstance(given_files, list) else [given_files]
    files = [Path(_text("replay", each)) for each in listed]
    named = arguments.get("program") or arguments.get("module")
    given = _program(arguments) if named else ()
    place = "" if at is None else _text("replayAt", at)
    return Replay.of(files, given, folder, name="by `program`", at=place)


def _own_arguments(args: Any) -> tuple[str, ...]:
    """Split `args` as a shell does; a list is used as it is."""
    args = _split("args", args)
    if args and not isinstance(args, list):
        raise UsageError(f"`args` must be a list of strings, not {args!r}")
    return tuple(_text("args", one) for one in args or ())


def _text(name: str, value: object) -> str:
    """Return a string or number as text that the operating system accepts."""
    if not isinstance(value, str | int | float):
        raise UsageError(f"`{name}`: {value!r} is not a string")
    if "\0" in (text := str(value)):
        raise UsageError(f"`{name}`: {value!r} contains a NUL")
    return text


def _folder(arguments: Arguments) -> Path:
    folder = Path(str(arguments.get("cwd") or Path.cwd()))
    if not folder.is_dir():
        raise UsageError(f"no such folder: {folder}")
    return folder


def _log_dir(config: Config) -> Path:
    return config.log_dir or Path(tempfile.mkdtemp(prefix="dap-mux-logs-"))


def _python(arguments: Arguments, other: str = "") -> str:
    return _text("python", arguments.get("python") or other or sys.executable)


def _environment(arguments: Arguments) -> dict[str, str | None]:
    """Return the variables to set, `env` above `envFile`; null removes one, as in debugpy."""
    environment = arguments.get("env") or {}
    if not isinstance(environment, Mapping):
        raise UsageError(f"`env` must be an object of names and values, not {environment!r}")
    for name in environment:
        if not name or "=" in name or "\0" in name:
            raise UsageError(f"`env`: {name!r} is not a valid variable name")
    given = {
        name: None if value is None else _text(f"env.{name}", value)
        for name, value in environment.items()
    }
    return {**added_variables(arguments, _folder(arguments)), **given}
