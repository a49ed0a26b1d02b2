"""`dap-mux attach`: a session over ranks that are already running."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from msgspec.structs import replace

from dap_mux.cluster.records import DEFAULT_GROUP, RankRecord
from dap_mux.engine import Settings
from dap_mux.pure.errors import UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import Mesh
from dap_mux.session.dial_out import ADDRESS, TOKEN_FILE, accept_reverse, split_dial_endpoints
from dap_mux.session.job import InlineConsole, announce
from dap_mux.session.rank_sources import RankSources
from dap_mux.session.session import Session, open_session, settings_of
from dap_mux.session.terminal_output import say, set_up_log
from dap_mux.system.config import AttachOptions, Config

LATE_S: Final = 2.0  # a cluster's workers may take ten times as long to import what they need
MAX_NAMED: Final = 4  # endpoints in a line on the terminal


async def attach_ranks(options: AttachOptions, console: InlineConsole | None = None) -> int:
    """Serve the ranks at `options.endpoints` until all are gone or a signal arrives; return 0.

    With a console also until that is left as the last debugger.
    """
    where = shortened(options.endpoints)
    loop = asyncio.get_running_loop()
    late = loop.call_later(LATE_S, say, f"asking for the ranks of {where}")
    try:
        async with session_over(options) as (session, count):
            late.cancel()
            say(f"one session for {count} ranks ({where}) on {session.address}")
            if console is None and not await announce(session.file, where):
                say("attach an editor to it; Ctrl-C releases every rank")
            await serve(session, console)
    finally:
        late.cancel()
    return 0


@asynccontextmanager
async def session_over(options: AttachOptions) -> AsyncIterator[tuple[Session, int]]:
    """Open a session over the ranks at `options.endpoints`; yield it, and their number."""
    config = options.config
    set_up_log(config.verbosity, config.log_dir, config.log)
    dialing, endpoints = split_dial_endpoints(options.endpoints)
    sources = await RankSources.of(endpoints, config.python)
    groups = sorted({*sources.groups, *dialing})
    settings = attach_settings(config, sources, groups)
    async with (
        open_session(config, settings, avoid=sources.local_ports, groups=groups) as session,
        _reverse_connections(session, config, dialing),
        anyio.create_task_group() as tasks,
    ):
        sources.announce_ranks(session)
        tasks.start_soon(sources.run, session)
        yield session, len(sources.records) + sum(dialing.values())
        tasks.cancel_scope.cancel()


def shortened(endpoints: Sequence[str]) -> str:
    """Return the endpoints for a line that people read: of many, the first and the last."""
    if len(endpoints) <= MAX_NAMED:
        return ", ".join(endpoints)
    first = ", ".join(endpoints[: MAX_NAMED - 1])
    return f"{first}, … {len(endpoints) - MAX_NAMED} more …, {endpoints[-1]}"


@asynccontextmanager
async def _reverse_connections(
    session: Session, config: Config, dialing: Mapping[str, int]
) -> AsyncIterator[None]:
    """Accept reverse connections where any of the endpoints is `dial:N`."""
    if not dialing:
        yield
        return
    async with accept_reverse(session, config, config.dial_listen, dialing) as listener:
        listener.ranks.announce_ranks()
        variables = f"{ADDRESS}={listener.address} {TOKEN_FILE}={listener.token_file}"
        say(f"ranks connect to this session where {variables} is set")
        yield


async def serve(
    session: Session, console: InlineConsole | None = None, then: str = "releasing every rank"
) -> None:
    """Serve until the ranks are gone; a signal releases them, and so does the last console.

    `then`: what a signal leads to, in words.
    """
    async with anyio.create_task_group() as tasks:

        async def talk(console: InlineConsole) -> None:
            if await console.run():
                tasks.cancel_scope.cancel()

        async def watch() -> None:
            number = await session.interrupted()
            while number is signal.SIGINT and console is not None and console.interrupt():
                number = await session.interrupted()
            say(f"{number.name}: {then}")
            await session.release(number.name)
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        if console is not None:
            tasks.start_soon(talk, console)
        await session.over()
        say("all ranks are gone")
        tasks.cancel_scope.cancel()


def attach_settings(config: Config, sources: RankSources, groups: Sequence[str] = ()) -> Settings:
    """Return the engine's settings for these ranks. Raises UsageError."""
    groups = groups or sources.groups
    home = groups[0] if len(groups) == 1 else DEFAULT_GROUP
    if config.mesh and home not in groups:
        raise UsageError(
            f"mesh {config.mesh}: there are several groups ({', '.join(groups)}), not {home}"
        )
    settings = settings_of(config, group=home, meshes=meshes_of(sources.records))
    return replace(
        settings, lingers=sources.lingers, swallows_exceptions=sources.swallows_exceptions
    )


def meshes_of(records: Iterable[RankRecord]) -> dict[str, Mesh]:
    """Return the mesh of each group whose ranks have all reported their coordinates."""
    groups = grouped((record.group, record) for record in records)
    found = {group: _mesh_of(members) for group, members in groups.items()}
    return {group: mesh for group, mesh in found.items() if mesh}


def _mesh_of(members: list[RankRecord]) -> Mesh | None:
    places = [(record.rank or 0, dict(record.coords or {})) for record in members]
    dims = list(places[0][1])
    if not dims or any(set(place) != set(dims) for _, place in places):
        return None
    mesh = Mesh(tuple((dim, 1 + max(place[dim] for _, place in places)) for dim in dims))
    fits = all(rank < mesh.size and mesh.coords(rank) == place for rank, place in places)
    return mesh if fits else Mesh(mesh.dims, dict(places))
