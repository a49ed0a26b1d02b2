"""Tells every controller, in its own dialect and with its own focus, what the ranks do."""

from __future__ import annotations

from msgspec import Struct

from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import Client, RowStates, Script, continued, thread
from dap_mux.engine.state.rank import Rank, StepRun
from dap_mux.engine.state.selection import fallback, focused, give_focus
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View, main_thread
from dap_mux.pure.protocol.messages import Body

APPLY_GRACE = 0.5  # s after which a stop counts as applied by a client that asks nothing


class ClientEvents(Struct, eq=False):
    """The engine's part that speaks to clients about threads."""

    _core: SessionState
    _view: View
    _breakpoints: Breakpoints

    # Stops

    def stops(self, new: list[Rank]) -> None:
        """These ranks have stopped since the clients were last told."""
        for client in self._core.controllers():
            self._send(client, self._stop_script(client, new))

    def _stop_script(self, client: Client, new: list[Rank]) -> Script:
        dialect = client.dialect
        focus = focused(self._core, client)
        if focus and focus.stop and focus not in new:
            client.focus.beside.update(rank.id for rank in new)
            if dialect.unseen(client.focus.explicit):
                return dialect.stop(self._states(client, focus))
            return dialect.late(self._states(client, focus), self._view.ids_for_stops(client, new))
        if focus and focus.run:
            return self._slow(client, new)
        if not (focus and focus.stop) or any(rank.stop and rank.stop.is_outlier for rank in new):
            focus = _most_telling(new)
        give_focus(client, focus.id)
        return dialect.stop(self._states(client, focus))

    def _states(self, client: Client, focus: Rank) -> RowStates:
        row = self._view.id_for_stop(client, focus)
        running = tuple(r.id for r in self._view.rows(client) if not r.stopped and r.id != row)
        return RowStates(row, running, self._details(client, focus))

    def _details(self, client: Client, rank: Rank) -> Body:
        if rank.stop is None:
            return {"reason": "pause"}
        details = {"reason": rank.stop.reason, **rank.stop.details}
        if "hitBreakpointIds" in details:
            ids = self._breakpoints.ids_for(client, rank, details["hitBreakpointIds"])
            details["hitBreakpointIds"] = ids
        return details

    # Running on

    def resumed(self, ranks: list[Rank]) -> None:
        """These ranks run on."""
        if ranks:
            self.stepping(ranks, moves_focus=True)

    def stepping(self, ranks: list[Rank], *, moves_focus: bool = False) -> None:
        """A step of these ranks has begun; the focus stays with whoever had it."""
        others = self._anybody_stopped()
        for client in self._core.controllers():
            if not others:
                self._resume_all(client, ranks)
                continue
            self._resume_rows(client, ranks)
            focus = focused(self._core, client)
            if moves_focus and focus in ranks:
                self._refocus(client, focus)

    def thread_steps(self, rank: Rank, thread: int) -> None:
        """A thread steps that stood while another one of its rank did."""
        row = self._view.id_of(rank.id, None if thread == main_thread(rank) else thread)
        for client in self._core.controllers():
            self._send(client, (continued(row),))

    def threads_left(self, rank: Rank, threads: list[int]) -> None:
        """These threads of a rank stand in user code no more: their rows disappear."""
        for id in threads:
            for client in self._core.controllers():
                self._emit(client, (thread("exited", self._view.id_of(rank.id, id)),))

    def threads_stand(self, rank: Rank, threads: list[int]) -> None:
        """These threads of a stopped rank have new rows: the focus stays where it is."""
        if self._view.mode() == "classes":
            return
        rows = tuple(self._view.id_of(rank.id, id) for id in threads)
        for client in self._core.controllers():
            focus = focused(self._core, client)
            shown = focus if focus and focus.stop else rank
            self._send(client, client.dialect.late(self._states(client, shown), rows))

    def overdue(self, run: StepRun) -> None:
        """A step takes long: who looks at it keeps its focus, and sees who else is stopped."""
        stopped = self._stopped()
        for client in self._core.controllers():
            focus = focused(self._core, client)
            if stopped and focus and focus.run is run:
                self._send(client, self._slow(client, stopped))

    def _slow(self, client: Client, stopped: list[Rank]) -> Script:
        client.focus.beside.update(rank.id for rank in stopped)
        states = self._states(client, stopped[0])
        return client.dialect.slow(states, self._view.ids_for_stops(client, stopped))

    def _stopped(self) -> list[Rank]:
        live = self._core.live_ranks()
        return [rank for rank in live if rank.stop and rank.stop.announced]

    def _anybody_stopped(self) -> bool:
        return any(r.stop for r in self._core.ranks.values() if r.phase.live)

    def _kept(self, client: Client) -> RowStates | None:
        """Return what the client's focus still shows, if it is stopped."""
        focus = focused(self._core, client)
        return self._states(client, focus) if focus and focus.stop else None

    def _resume_all(self, client: Client, ranks: list[Rank]) -> None:
        row = self._view.id_for_stop(client, focused(self._core, client) or ranks[0])
        self._send(client, client.dialect.resume_all(row))
        self._rename(client, row)

    def _rename(self, client: Client, row: int) -> None:
        """Classes are named by their place, which is another now: have the names read again."""
        if client.dialect.renames and self._view.mode() == "classes":
            self._reread(client, row)

    def _reread(self, client: Client, row: int) -> None:
        """Have a client ask `threads`, which applies no stop."""
        self._emit(client, (thread("started", row),))
        client.sync.replies += 1

    def renamed(self, ranks: list[Rank]) -> None:
        """The names of these ranks' rows are others now: have them read again."""
        for client in self._core.controllers():
            if ranks and client.dialect.renames:
                self._reread(client, self._view.id_for_stop(client, ranks[0]))

    def _resume_rows(self, client: Client, ranks: list[Rank]) -> None:
        rows = self._view.ids_for_stops(client, ranks)
        self._send(client, client.dialect.resume_some(rows, self._kept(client)))
        self._rename(client, rows[0])

    # Coming, going, moving

    def joined(self, rank: Rank) -> None:
        """A rank is attached: its row appears."""
        for client in self._core.controllers():
            row = self._view.id_of(rank.id)
            self._send(client, client.dialect.joined(row, self._kept(client)))
            client.sync.replies += 1

    def left(self, rank: Rank) -> None:
        """A rank's row disappears; who looked at it is shown another stopped rank, if any."""
        row = self._view.id_of(rank.id)
        for client in self._core.controllers():
            had_focus = client.focus.rank == rank.id
            shown = had_focus and rank.stop is not None
            self._send(client, client.dialect.left(row, focus=shown))
            if had_focus:
                self._refocus(client, rank)

    def _refocus(self, client: Client, gone: Rank) -> None:
        heir = fallback(self._core, gone)
        if heir:
            self.move(client, heir, None)
        elif not gone.phase.live:
            client.focus.rank = None

    def move(self, client: Client, rank: Rank, old: int | None) -> None:
        """Show a client another stopped rank; `old` is the row it leaves, if still there."""
        give_focus(client, rank.id)
        self._let_go(client)
        client.focus.held = self._core.after(APPLY_GRACE, lambda: self._let_go(client))
        self._send(client, client.dialect.move(self._states(client, rank), old))

    def _let_go(self, client: Client) -> None:
        """The client has arrived at its new focus: from now on it goes where it looks."""
        self._core.cancel(client.focus.held)
        client.focus.held = None

    def show_rows(self, client: Client) -> None:
        """Tell a client that has just joined which rows there are; classes come with stops."""
        if self._view.mode() != "classes":
            for row in self._view.rows(client):
                self._emit(client, (thread("started", row.id),))

    def present(self, client: Client) -> None:
        """Tell a client that has just joined how things stand.

        VS Code asks `threads` after `configurationDone` and for new rows: neither applies a stop.
        """
        client.sync.replies += 2
        stopped = self._stopped()
        if stopped:
            self._send(client, self._stop_script(client, stopped))

    def regrouped(self, client: Client) -> None:
        """Rows changed without a stop: let the client read them again.

        Another view, or its focus, which it takes for running, stays while the scope runs on.
        """
        focus = focused(self._core, client)
        if focus and focus.stop:
            self._send(client, client.dialect.stop(self._states(client, focus)))
            return
        for row in self._view.rows(client)[:1]:
            self._send(client, (thread("started", row.id),))

    # When a stop has been applied

    def applying(self) -> bool:
        """Whether some client has not applied the last stop of a rank that still stands."""
        clients = [client for client in self._core.controllers() if client.sync.row is not None]
        return bool(clients) and bool(self._stopped())

    def threads_answered(self, client: Client) -> None:
        """The client has the rows: an `allThreadsStopped` is applied now, so say who runs."""
        if client.dialect.fetches or not client.sync.replies:
            return
        client.sync.replies -= 1
        self._tell_running(client)
        if not client.sync.replies and not client.dialect.stack_applies:
            self._end_sync(client)

    def stack_answered(self, client: Client, row: int) -> None:
        """The stack of a stop is fetched once the stop is applied, by some without `threads`."""
        focus = focused(self._core, client)
        if focus and row == self._view.id_for_stop(client, focus):
            self._let_go(client)
            if client.sync.redraw:  # each time: the stack of another late stop may yet come
                self._reread(client, row)
        if client.dialect.stack_applies and client.sync.row == row:
            client.sync.replies = 0
            self._tell_running(client)
            self._end_sync(client)

    def _send(self, client: Client, script: Script) -> None:
        """Send a script; a stop of all in it must be followed by who runs, once it is applied."""
        self._emit(client, script)
        stops = [body for name, body in script if name == "stopped" and body["allThreadsStopped"]]
        if stops:
            self._end_sync(client)
            client.sync.replies += 1
            client.sync.row = stops[-1]["threadId"]
            client.sync.redraw = client.dialect.redraws and "preserveFocusHint" in stops[-1]
            client.sync.timer = self._core.after(APPLY_GRACE, lambda: self._grace_over(client))

    def _grace_over(self, client: Client) -> None:
        client.sync.timer = None
        self._tell_running(client)
        if not client.sync.replies:
            self._end_sync(client)

    def _tell_running(self, client: Client) -> None:
        """Say who runs now, which may be others than when the stop was sent."""
        if client.sync.row is None or client.id not in self._core.clients:
            return
        focus = focused(self._core, client)
        if not self._anybody_stopped():
            self._say_all_run(client)
            return
        row = self._view.id_for_stop(client, focus) if focus and focus.run else None
        first = next(rank for rank in self._core.live_ranks() if rank.stop)
        shown = focus if focus and focus.stop else first
        self._emit(client, client.dialect.applied(self._states(client, shown), row))

    def _say_all_run(self, client: Client) -> None:
        """Tell the client that all ranks run, naming one that is still there, if any is."""
        rank = focused(self._core, client) or next(iter(self._core.live_ranks()), None)
        if rank is not None:
            row = self._view.id_for_stop(client, rank)
            self._emit(client, client.dialect.resume_all(row))

    def _end_sync(self, client: Client) -> None:
        self._core.cancel(client.sync.timer)
        client.sync.row, client.sync.timer = None, None

    def _emit(self, client: Client, events: Script) -> None:
        for name, body in events:
            to_clients.send_event(self._core, client, name, body)


def _most_telling(ranks: list[Rank]) -> Rank:
    """Return the rank to look at first: one with an exception, or an outlier, else the lowest."""
    stops = ((rank, rank.stop) for rank in ranks if rank.stop)
    telling = (rank for rank, stop in stops if stop.reason == "exception" or stop.is_outlier)
    return next(telling, ranks[0])
