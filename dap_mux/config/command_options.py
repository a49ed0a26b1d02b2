"""The options of each command that starts a session, as plain values."""

from __future__ import annotations

from typing import NamedTuple

from dap_mux.config.config import Config


class RunOptions(NamedTuple):
    """Start `world_size` local ranks of `command`: a script and its arguments, or `-m`, a module
    and its arguments. `dial`: the ranks connect to the session instead of listening.
    """

    config: Config
    command: tuple[str, ...]
    world_size: int
    dial: bool = False


class LaunchOptions(NamedTuple):
    """Start a launcher, whose command line is as it was typed, and debug the ranks it starts."""

    config: Config
    command: tuple[str, ...]
    dial: bool = False
    """Ranks connect to the session, on `config.dial_listen`, instead of listening."""


class AttachOptions(NamedTuple):
    """Attach to ranks that listen at `endpoints`, as the user wrote them (`host:5678-5681`)."""

    config: Config
    endpoints: tuple[str, ...]


class AdapterOptions(NamedTuple):
    """Be a debug adapter on standard input and output; attach and launch arguments say the rest."""

    config: Config
