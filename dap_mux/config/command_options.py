"""The options of each command that starts a session, as plain values."""

from __future__ import annotations

from msgspec import Struct

from dap_mux.config.config import Config


class RunOptions(Struct, frozen=True):
    """Start `world_size` local ranks of `command`: a script and its arguments, or `-m`, a module
    and its arguments. `dial`: the ranks connect to the session instead of listening.
    """

    config: Config
    command: tuple[str, ...]
    world_size: int
    dial: bool = False


class LaunchOptions(Struct, frozen=True):
    """Start a launcher, whose command line is as it was typed, and debug the ranks it starts."""

    config: Config
    command: tuple[str, ...]
    dial: bool = False
    """Ranks connect to the session, on `config.dial_listen`, instead of listening."""
    name: str = ""
    """The job, as messages to the user name it; "" names the launcher."""


class RerunOptions(Struct, frozen=True):
    """Run the task `key` of the cluster at `endpoint` (`dask:tcp://HOST:8786`) as a rank."""

    config: Config
    key: str
    endpoint: str


class AttachOptions(Struct, frozen=True):
    """Attach to ranks that listen at `endpoints`, as the user wrote them (`host:5678-5681`)."""

    config: Config
    endpoints: tuple[str, ...]


class AdapterOptions(Struct, frozen=True):
    """Be a debug adapter on standard input and output; attach and launch arguments say the rest."""

    config: Config
