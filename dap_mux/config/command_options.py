"""The options of each command that starts a session, as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

from dap_mux.config.config import Config


@dataclass(frozen=True)
class RunOptions:
    """Start `world_size` local ranks of `command`: a script and its arguments, or `-m`, a module
    and its arguments. `dial`: the ranks connect to the session instead of listening.
    """

    config: Config
    command: tuple[str, ...]
    world_size: int
    dial: bool = False


@dataclass(frozen=True)
class LaunchOptions:
    """Start a launcher, whose command line is as it was typed, and debug the ranks it starts."""

    config: Config
    command: tuple[str, ...]
    dial: bool = False
    """Ranks connect to the session, on `config.dial_listen`, instead of listening."""


@dataclass(frozen=True)
class AttachOptions:
    """Attach to ranks that listen at `endpoints`, as the user wrote them (`host:5678-5681`)."""

    config: Config
    endpoints: tuple[str, ...]


@dataclass(frozen=True)
class AdapterOptions:
    """Be a debug adapter on standard input and output; attach and launch arguments say the rest."""

    config: Config
