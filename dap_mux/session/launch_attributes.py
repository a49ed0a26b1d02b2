"""What an editor's `launch` wants to have started: ranks of our own, or a launcher."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dap_mux.cluster.launcher import LauncherJob
from dap_mux.cluster.local import LocalJob
from dap_mux.config import Config
from dap_mux.errors import UsageError

Arguments = Mapping[str, Any]


def launch_job(config: Config, arguments: Arguments) -> LocalJob:
    """Return the ranks that a `launch` request describes; raise UsageError where it is wrong."""
    count = arguments.get("nproc", 1)
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"`nproc` is the number of ranks, not {count!r}")
    return LocalJob(
        command=_program(arguments),
        world_size=count,
        base_port=config.base_port,
        wait=config.wait,
        stop_on_entry=arguments.get("stopOnEntry") is True,
        log_dir=_log_dir(config),
        python=_python(arguments),
        env=_environment(arguments),
        cwd=_folder(arguments),
        ends_with_us=True,
    )


def launcher_job(config: Config, arguments: Arguments) -> LauncherJob:
    """Return the launcher that a `launch` request describes; raise UsageError where it is wrong.

    Programs of the Python that runs us (or of `python`) are found before those in PATH: nobody
    has activated its environment for an editor.
    """
    launcher = arguments["launcher"]
    words = _words(launcher)
    if "nproc" in arguments:
        raise UsageError(
            f"`nproc` is for ranks without a launcher: tell {words[0]} how many it shall start"
        )
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
    """`launcher` as a shell would take it apart, or as it is where it is a list."""
    if isinstance(launcher, str):
        try:
            words = shlex.split(launcher)
        except ValueError as error:
            raise UsageError(f"`launcher` {launcher!r}: {error}") from error
    elif isinstance(launcher, list) and all(isinstance(word, str) for word in launcher):
        words = launcher
    else:
        words = []
    if not words:
        raise UsageError(
            f"`launcher` is a command, such as 'torchrun --nproc-per-node 4', not {launcher!r}"
        )
    return tuple(words)


def _program(arguments: Arguments) -> tuple[str, ...]:
    """The program or module, and its own arguments."""
    folder, own = _folder(arguments), tuple(map(str, arguments.get("args") or ()))
    module, program = arguments.get("module"), arguments.get("program")
    if module:
        return ("-m", str(module), *own)
    if not program:
        raise UsageError("launch needs `program` (a script) or `module`")
    path = os.path.join(folder, str(program))  # noqa: PTH118  (an absolute program wins)
    if not os.path.isfile(path):  # noqa: PTH113
        raise UsageError(f"there is no file {program}")
    return (path, *own)


def _folder(arguments: Arguments) -> Path:
    folder = Path(str(arguments.get("cwd") or Path.cwd()))
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    return folder


def _log_dir(config: Config) -> Path:
    return config.log_dir or Path(tempfile.mkdtemp(prefix="dap-mux-logs-"))


def _python(arguments: Arguments) -> str:
    return str(arguments.get("python") or sys.executable)


def _environment(arguments: Arguments) -> dict[str, str]:
    environment = arguments.get("env") or {}
    return {str(key): str(value) for key, value in environment.items()}
