"""A client's requests: each finds its route, none stays without an answer; what routes offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from dap_mux.engine import admission, inputs
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.endpoint import Traits
from dap_mux.pure.errors import PeerFault, StaleHandle, UsageError
from dap_mux.pure.protocol.arguments import NoArguments
from dap_mux.pure.protocol.messages import Body, Message, raw
from dap_mux.pure.protocol.types import DIVERGED, LOCATED, NOT_FINITE, UNAUTHORIZED
from dap_mux.pure.protocol.validation import check

Handler: TypeAlias = Callable[[ClientRequest], None]
PartsT = TypeVar("PartsT")  # whatever has the parts that answer
MAX_OPEN: Final = 4096  # requests of one client that wait for their answers


class Route(Struct, Generic[PartsT], frozen=True):
    """What happens to one request. No `handler`: it is refused at once and never forwarded."""

    handler: Callable[[PartsT], Handler] | None
    arguments: type[Struct] = NoArguments
    capabilities: tuple[str, ...] = ()
    before_attach: bool = False  # an initialized client may send it before it attaches
    observers: bool = False  # an observer may send it
    moves: bool = False  # it may move ranks


class Requests(Struct, Generic[PartsT], eq=False):
    """The engine's part that takes clients' requests, and those that we make for a client.

    Handlers are looked up in `parts` when they are called, so that parts may make requests too.
    `not_introduced` takes the messages of a client that has not sent its `initialize`; `acts` is
    told of each request that may move ranks before its handler, and may refuse it.
    """

    _core: SessionState
    _routes: Mapping[str, Route[PartsT]]
    _parts: PartsT
    _not_introduced: Callable[[Client, Message], None]
    _acts: Callable[[ClientRequest], None]

    def said(self, event: inputs.ClientSaid) -> None:
        """A client has sent a message; before `initialize` there is nothing else to say."""
        client = self._core.clients.get(event.client)
        if client is None:
            return
        if client.initialized or event.message.command == "initialize":
            self._hear(client, event.message)
        else:
            self._not_introduced(client, event.message)

    def _hear(self, client: Client, message: Message) -> None:
        if client.leaving or message.type != "request":
            return  # answers to us: we ask clients nothing
        number = self._core.number()
        request = ClientRequest(client, message.seq, message.command, message.arguments, number)
        client.open[number] = request
        if len(client.open) > MAX_OPEN:
            text = f"{MAX_OPEN} requests of this client are unanswered: wait before you send more"
            to_clients.refuse(self._core, request, text)
            return
        self._handle(request)

    def _handle(self, request: ClientRequest) -> None:
        if not request.client.trusted and request.command not in admission.BEFORE:
            to_clients.refuse(self._core, request, admission.MISSING, UNAUTHORIZED)
            return
        self._core.cause = request
        try:
            self._run(request, request.client.translation)
        except (StaleHandle, UsageError, PeerFault) as error:
            to_clients.refuse(self._core, request, str(error))

    def on_behalf(
        self, outer: ClientRequest, command: str, arguments: Body, then: Callable[[Body, str], None]
    ) -> None:
        """Handle a request as if `outer`'s client had sent it; `then` takes the body or the error.

        Raises what makes a request be refused.
        """
        request = ClientRequest(outer.client, outer.seq, command, raw(arguments), reply=then)
        self._run(request, None)

    def _run(self, request: ClientRequest, translation: ClientTranslation | None) -> None:
        """Call the handler. Raises what makes a request be refused."""
        command, route = request.command, self._routes.get(request.command)
        if route is None:
            raise UsageError(f"unknown request {command!r}")
        if route.handler is None:
            raise UsageError(f"{command!r} is not supported")
        _check_role(request.client.role, command, route)
        request.arguments = check(command, request.arguments, route.arguments)
        if translation is not None:
            request.arguments = translation.arguments(route.arguments, request.arguments)
        if route.moves:
            self._acts(request)
        route.handler(self._parts)(request)


def _check_role(role: str, command: str, route: Route[PartsT]) -> None:
    if not role and not route.before_attach:
        raise UsageError(f"{command!r} needs an attached client: send `attach` first")
    if role == "observer" and not route.observers:
        text = f"{command!r} is for controllers; this client attached as observer"
        more = "omit `role` from its attach arguments to let it do more than look"
        raise UsageError(f"{text}: {more}")


# Capabilities are computed from the routing table and the ranks' offers, so they cannot lie.


def _filter(name: str, label: str, description: str) -> Body:
    default = name == UNCAUGHT
    return {"filter": name, "label": label, "default": default, "description": description}


# Capabilities that every debugpy has: assumed until the first rank reports its own.
UNCAUGHT: Final = "uncaught"
USER_UNHANDLED: Final = "userUnhandled"
FILTERS: Final = [
    _filter("raised", "Raised Exceptions", "Break whenever any exception is raised."),
    _filter(
        UNCAUGHT,
        "Uncaught Exceptions",
        "Break when the process is exiting due to unhandled exception.",
    ),
    _filter(
        USER_UNHANDLED,
        "User Uncaught Exceptions",
        "Break when exception escapes into library code.",
    ),
]
OUR_FILTERS: Final = [
    _filter(
        NOT_FINITE,
        "Not Finite",
        "Break before a rank sends NaN or infinity, or an optimizer steps to them.",
    ),
    _filter(
        LOCATED,
        "Not Finite: Locate",
        "The same, and name the line that made them: each operation is looked at.",
    ),
    _filter(
        DIVERGED, "Diverged", "Break after a step in which parameters differ that ranks keep equal."
    ),
]
"""Those that the session adds to the ranks' own."""
DEFAULT_EXCEPTIONS: Final[Body] = {"filters": [UNCAUGHT]}
SWALLOWED: Final[Body] = {"filters": [UNCAUGHT, USER_UNHANDLED]}
"""The filters for ranks of a framework that swallows exceptions, until a client chooses others."""
FILTERS_KEY: Final = "exceptionBreakpointFilters"
EACH: Final = "each"
TOGETHER: Final = "together"
DIFFER: Final = "differ"
MODES: Final[list[Body]] = [
    {"mode": mode, "label": label, "description": description, "appliesTo": ["source"]}
    for mode, label, description in (
        (EACH, "each rank", "Each rank stops by itself."),
        (TOGETHER, "all together", "Ranks wait for each other, and stop once all are there."),
        (
            DIFFER,
            "when ranks differ",
            "Ranks stop where the condition, an expression, differs between them.",
        ),
    )
]
"""The modes that an editor offers for a breakpoint; the first is the default."""
OWN: Final[Body] = {
    "supportsConfigurationDoneRequest": True,
    "supportsSingleThreadExecutionRequests": True,
    "breakpointModes": MODES,
}
NEEDS_OWNERSHIP: Final = frozenset({"supportsTerminateRequest", "supportTerminateDebuggee"})
# Only to whoever launched the job: editors show Restart beside Continue, and an attached one, which
# is not offered it, attaches again instead.
NEEDS_LAUNCH: Final = "supportsRestartRequest"

STEPS_BACK: Final = "supportsStepBack"
"""No debugpy has it, so it is offered only in a replay, and once ranks of a recording say so."""
MAX_OFFERS: Final = 256  # that differ; ranks of one job are of a few kinds


def offers_of(body: Body) -> Body:
    """Return what a rank offers, of the form that DAP gives it; nonsense counts as nothing."""
    flags = {name: value for name, value in body.items() if isinstance(value, bool)}
    filters = body.get("exceptionBreakpointFilters")
    known = filters if isinstance(filters, list) else []
    return {**flags, FILTERS_KEY: [item for item in known if _is_filter(item)]}


def _is_filter(item: object) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(k), str) for k in ("filter", "label"))


class Capabilities:
    """The engine's part that answers `initialize` and tells of changes."""

    def __init__(self, core: SessionState, routed: Iterable[str]) -> None:
        self._core = core
        self._routed = frozenset(routed)
        self._counted = self._routed | {FILTERS_KEY}
        self._told: Body = {}
        self._seen: list[Body] = []
        self._last: Body = {}
        # Some ranks' frameworks catch what user code raises.
        self._swallowed = core.settings.swallows_exceptions

    def now(self) -> Body:
        """Return the intersection of what the ranks offer and what we route, and our own."""
        offers = self._seen
        flags = {name: True for name in sorted(self._routed) if self._offered(name, offers)}
        self._told = {**flags, **OWN, FILTERS_KEY: self._filters(offers)}
        return self._told

    def _offered(self, name: str, offers: list[Body]) -> bool:
        if name == NEEDS_LAUNCH:
            return False
        if name == STEPS_BACK and (self._core.settings.replays or not offers):
            return self._core.settings.replays
        if name in NEEDS_OWNERSHIP:
            return self._core.settings.owns_job
        return all(offer.get(name) for offer in offers)

    def offered(self, offers: Body) -> None:
        """A rank has spoken: tell the clients if that changes what we offer.

        A capability that one rank lacks stays out after it has left: it may come back.
        """
        if offers is self._last:  # most ranks offer the same
            return
        self._last = offers
        offers = {key: value for key, value in offers.items() if key in self._counted}
        if offers in self._seen or len(self._seen) >= MAX_OFFERS:
            return
        self._seen.append(offers)
        self.tell_change()

    def rank_known(self, traits: Traits) -> None:
        """A rank is known: where its framework swallows exceptions, a client should choose that.

        It stays so when that rank has left.
        """
        if traits.swallows_exceptions and not self._swallowed:
            self._swallowed = True
            self.tell_change()

    def _filters(self, offers: list[Body]) -> list[Body]:
        filters = _filters(offers)
        if not self._swallowed:
            return filters
        marked = {"default": True}
        return [{**one, **marked} if one["filter"] == USER_UNHANDLED else one for one in filters]

    def tell_change(self) -> None:
        """Tell clients what is offered now and was not before."""
        before = self._told
        now = self.now()
        changed = {key: value for key, value in now.items() if before.get(key) != value}
        changed |= {key: False for key in before if key not in now}
        if not before or not changed:
            return
        for client in self._core.clients.values():
            if client.initialized and client.trusted:
                body: Body = {"capabilities": changed}
                to_clients.send_event(self._core, client, "capabilities", body)


def offer_restart(core: SessionState, client: Client) -> None:
    """The job is this client's own: tell it that it may have the job started again."""
    if core.settings.owns_job:
        body: Body = {"capabilities": {NEEDS_LAUNCH: True}}
        to_clients.send_event(core, client, "capabilities", body)


def _filters(offers: list[Body]) -> list[Body]:
    """Return the filters that every rank has, in the first one's words."""
    lists = [offer[FILTERS_KEY] for offer in offers]
    if not lists:
        return [*FILTERS, *OUR_FILTERS]
    common = set.intersection(*({item["filter"] for item in items} for items in lists))
    return [item for item in lists[0] if item["filter"] in common] + (OUR_FILTERS if common else [])
