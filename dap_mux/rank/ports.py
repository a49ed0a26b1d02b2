"""Which port is this rank's: asked for, given by the platform, or 5678 + rank."""

from __future__ import annotations

from collections.abc import Mapping

from dap_mux.rank.environ import Place

DEFAULT_BASE_PORT = 5678
LAST_PORT = 65535
NAME = "DEBUG_PORT_NAME"
# OpenPAI: the ports that a task asked for under `resourcePerInstance.ports`, by their name.
LIST = "PAI_PORT_LIST_"
ROLE, TASK = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"


class NoSuchPort(Exception):
    """`DEBUG_PORT_NAME` leads to no port; the text says why, and what helps."""


def first_port(
    environ: Mapping[str, str], place: Place, port: int | None, base_port: int | None
) -> int:
    """The port to try first: `port`, else `base_port` + rank, else the one `DEBUG_PORT_NAME`
    names, else 5678 + rank. Raises `NoSuchPort`.
    """
    if port is not None:
        return port
    name = environ.get(NAME, "")
    if base_port is None and name:
        return _named(environ, name, place.local_rank or 0)
    return (base_port or DEFAULT_BASE_PORT) + (place.rank or 0)


def _named(environ: Mapping[str, str], name: str, local_rank: int) -> int:
    """The port that OpenPAI gave this rank under a name; one for each rank of the task."""
    variable = f"{LIST}{environ.get(ROLE, '')}_{environ.get(TASK, '')}_{name}"
    if variable not in environ:
        raise NoSuchPort(f"{NAME} is {name!r}, but {variable} is not set: {_help(environ, name)}")
    ports = [_port(text) for text in environ[variable].split(",")]
    if None in ports:
        raise NoSuchPort(f"{variable} is {environ[variable]!r}, which is not a list of ports")
    if local_rank >= len(ports):
        raise NoSuchPort(
            f"{variable} has {len(ports)} port(s), none for local rank {local_rank}: "
            f"ask for one for each rank under resourcePerInstance.ports ({name}: {local_rank + 1})"
        )
    return ports[local_rank] or 0


def _help(environ: Mapping[str, str], name: str) -> str:
    if ROLE not in environ:
        return f"that name is looked up on OpenPAI only; elsewhere leave {NAME} out"
    start = f"{LIST}{environ[ROLE]}_{environ.get(TASK, '')}_"
    names = sorted(each.removeprefix(start) for each in environ if each.startswith(start))
    have = f"it has {', '.join(names)}" if names else "it has none"
    return f"ask for it under resourcePerInstance.ports ({name}: 1); {have}"


def _port(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= LAST_PORT else None
