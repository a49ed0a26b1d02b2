"""In a proc of Monarch: it becomes a rank before anything of the user's runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from monarch._src.actor import actor_mesh, proc_mesh

from dap_mux.rank import api
from dap_mux.rank.environ import MARK, Place
from dap_mux.rank.frameworks import monarch_actors
from dap_mux.rank.frameworks.launched import joins_session, say_out_of_reach
from dap_mux.rank.frameworks.monarch_spawns import arm_spawned
from dap_mux.rank.pickled_code import keep_file_names
from dap_mux.rank.ready import RENDEZVOUS

UNNAMED = "anon"
GROUP = "procs"
"""The group of the procs of a mesh that the program gives no name."""
TRAITS = {"userThreads": True, "swallowsExceptions": True}


def set_up(bundle: bytes | None, environ: dict[str, str]) -> None:
    """Become a rank, in Monarch's own setup; `bundle`: to arm procs that are spawned from here."""
    if os.environ.get(MARK) == str(os.getpid()):
        return
    context = actor_mesh.context()
    name = context.actor_instance.proc_id.partition("<")[0].rpartition("-")[0]
    point = context.message_rank
    if not _become(GROUP if name in ("", UNNAMED) else name, point):
        return
    keep_file_names()
    _announce("", point.rank, point)
    _precede_actors()
    _precede_calls()
    if bundle is not None:
        arm_spawned(proc_mesh, bundle, environ)


# A rank has the name of its proc mesh, and its number there. The actors in the proc are further
# names of it, with numbers and dimensions of their own; an endpoint that is called by a renamed
# mesh brings the dimensions of that.
def _become(group: str, point: Any) -> bool:
    size = point.extent.nelements
    coords = {label: point[label] for label in point}
    place = Place(rank=point.rank, world_size=size, launcher="Monarch", group=group, coords=coords)
    if joins_session(place, TRAITS):
        return True
    if RENDEZVOUS in os.environ:
        say_out_of_reach(place)
        return False
    os.environ[MARK] = str(os.getpid())
    api.start(api.Setup(place=place, traits=TRAITS, hold=0))
    return True


def _precede_actors() -> None:
    """An actor is announced before its `__init__` runs."""

    def new(kind: type, *_arguments: Any, **_options: Any) -> Any:
        if kind.__module__.split(".")[0] != "monarch":
            context = actor_mesh.context()
            point = context.message_rank
            _announce(context.actor_instance.name, point.rank, point)
        return object.__new__(kind)

    type.__setattr__(actor_mesh.Actor, "__new__", staticmethod(new))


def _precede_calls() -> None:
    """A renamed mesh is seen when an endpoint is called by it; without this it is not."""
    usual: Callable[..., Any] | None = getattr(actor_mesh._Actor, "_lookup", None)  # noqa: SLF001
    if usual is None:
        return

    @functools.wraps(usual)
    def lookup(self: Any, context: Any, *rest: Any) -> Any:
        with suppress(Exception):
            instance, point = context.actor_instance, context.message_rank
            if monarch_actors.lacks(instance.name, point):
                _announce(instance.name, instance.rank.rank, point)
        return usual(self, context, *rest)

    type.__setattr__(actor_mesh._Actor, "_lookup", lookup)  # noqa: SLF001


def _announce(name: str, number: int, point: Any) -> None:
    """Tell the session of an actor, or (without a name) of the place among the procs."""
    labels = list(point)
    mesh = [labels, [point.size(label) for label in labels], [point[label] for label in labels]]
    monarch_actors.announce({"name": name, "rank": number, "mesh": mesh})
