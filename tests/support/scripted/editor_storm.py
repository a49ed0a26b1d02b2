"""A storm around one real editor's model: in the end its user must see what is so.

The editor's connection is as slow as the ranks': what it sends and is sent waits on the wire
until the drawn order delivers it, so that a key is pressed while a stop is still under way.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from dap_mux.engine import Settings, inputs, outputs
from dap_mux.engine.state.phases import Phase
from dap_mux.pure.protocol.messages import decode
from tests.support.clients.conversation import Conversation
from tests.support.editors import DapeModel, Editor, NvimDapModel, VSCodeModel
from tests.support.scripted.interleaving_fuzz import PATH, Json, Storm

VSCODE: Final = 0
EDITORS: Final[tuple[Callable[[dict[str, list[int]]], Editor], ...]] = (
    VSCodeModel,
    NvimDapModel,
    DapeModel,
)
KEYS: Final = ("continue", "pause", "next")


class EditorStorm(Storm):
    """One editor, attached from the start, with a breakpoint in the loop."""

    def __init__(self, ranks: int, kind: int) -> None:
        super().__init__(ranks, Settings(view="ranks"))
        self.editor = EDITORS[kind]({PATH: [6]})
        self.to_engine: deque[Json] = deque()
        self.to_editor: deque[Json] = deque()
        self._talk = Conversation(self.editor.client_id)
        self.feed(inputs.ClientConnected(1))
        self.say_all(self.editor.start({"justMyCode": True, "subProcess": True}))

    def to_client(self, output: outputs.ToClient) -> None:
        self.to_editor.append(json.loads(output.body))

    def say_all(self, requests: Iterable[Json]) -> None:
        """Put the editor's requests on the wire."""
        for request in requests:
            self._talk.client_sent(request)
            self.to_engine.append(request)

    # What may happen

    def editor_hears(self, pick: int) -> None:
        """A message arrives at the editor."""
        if self.to_editor:
            message = self.to_editor.popleft()
            self._talk.server_sent(message)
            self.say_all(self.editor.receive(message))

    def editor_is_heard(self, pick: int) -> None:
        """A request of the editor arrives."""
        if self.to_engine:
            message = decode(json.dumps(self.to_engine.popleft()).encode())
            self.feed(inputs.ClientSaid(1, message))

    def press_f5(self, pick: int) -> None:
        """The user presses F5."""
        self.say_all(self.editor.press_f5())

    def press_f10(self, pick: int) -> None:
        """The user presses F10."""
        self.say_all(self.editor.press_f10())

    def press_row(self, pick: int) -> None:
        """The user presses a button of one row, as far as the row has it."""
        rows = list(self.editor.threads.items())
        if rows:
            thread, (_, state) = rows[pick % len(rows)]
            command = "pause" if state == "running" else KEYS[(pick // 8) % len(KEYS)]
            if (command == "pause") == (state == "running"):
                self.say_all(self.editor.press_row_button(thread, command))

    def timers(self, pick: int) -> None:
        """The editor's own timers fire."""
        if isinstance(self.editor, VSCodeModel):
            self.say_all(self.editor.tick_100ms_after_thread_started())
            self.say_all(self.editor.tick_420ms_after_stop())

    # The end

    def deliver(self) -> bool:
        busy = bool(self.to_editor or self.to_engine)
        self.editor_hears(0)
        self.editor_is_heard(0)
        return busy

    def calm_down(self) -> None:
        """Deliver everything, fire the editor's timers, and let every deadline pass."""
        for rank in self.ranks.values():
            rank.slow = False
        for _ in range(3):
            self.settle()
            self.timers(0)
        self.settle()

    def check(self) -> None:
        """The rows are the attached ranks, each in the state that it is in."""
        ranks = self.engine.core.ranks.values()
        live = [rank for rank in ranks if rank.phase is Phase.LIVE]
        view = self.engine.view
        is_so = {view.id_of(r.id): "stopped" if r.stop else "running" for r in live}
        seen = {thread: state for thread, (_, state) in self.editor.threads.items()}
        if not self.editor.terminated:
            assert seen == is_so, f"{self.editor.client_id} shows {seen}, and so it is: {is_so}"
        for rank in live:
            assert rank.link is not None
            stopped = self.wires[rank.link].rank.data.stopped
            assert bool(rank.stop) == bool(stopped), f"{rank.id}: a lie"


CALM_ACTIONS: Final[tuple[Callable[[EditorStorm, int], None], ...]] = (
    EditorStorm.connect,
    *[EditorStorm.ask_rank] * 6,
    *[EditorStorm.hear_rank] * 8,
    *[EditorStorm.run_rank] * 3,
    EditorStorm.slow_rank,
    EditorStorm.deadline,
    *[EditorStorm.editor_hears] * 6,
    *[EditorStorm.editor_is_heard] * 6,
    EditorStorm.press_f5,
    EditorStorm.press_f10,
    EditorStorm.press_row,
    EditorStorm.timers,
)
ROUGH_ACTIONS: Final = (
    *CALM_ACTIONS,
    EditorStorm.end_rank,
    EditorStorm.cut_link,
    EditorStorm.start_child,
)
