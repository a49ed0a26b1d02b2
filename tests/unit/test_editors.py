"""The editor models do what their editors do, and the recommended event sequences suit them.

Threads 1..4 are ranks 0..3; thread 1 runs on while the others stop, thread 2 has the focus.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.clients.adapter import Adapter
from tests.support.editors import DapeModel, Editor, NvimDapModel, VSCodeModel

RUNNER: Final = 1
F: Final = 2
X: Final = 3
OTHER: Final = 4
STOPPED: Final = {1: "running", 2: "stopped", 3: "stopped", 4: "stopped"}
EDITORS: Final = [VSCodeModel, NvimDapModel, DapeModel]


def stop_all_but(adapter: Adapter, runners: list[int], focus: int = F) -> None:
    """Announce a first stop in the way that suits the editor."""
    adapter.stopped(focus, every=True)
    for runner in runners:
        adapter.continued(runner, every=False)
    if runners and isinstance(adapter.editor, DapeModel):
        adapter.stopped(focus, every=False)


@pytest.fixture(params=EDITORS)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    made = Adapter(request.param({"/train.py": [10]}))
    made.start()
    return made


def one_of(editor: Editor) -> Adapter:
    made = Adapter(editor)
    made.start()
    return made


class TestStart:
    @pytest.mark.parametrize("model", EDITORS)
    def test_every_editor_gets_through_the_handshake(self, model: type[Editor]) -> None:
        adapter = Adapter(model({"/train.py": [10], "/model.py": [3]}))
        adapter.take(adapter.editor.start({}))
        adapter.event("initialized")
        commands = [command for command, _ in adapter.asked]
        assert commands[:2] == ["initialize", "attach"]
        assert commands.count("setBreakpoints") == 2
        assert commands.count("configurationDone") == 1


class TestSomeStoppedOneRunning:
    def test_the_recommended_sequence_shows_it(self, adapter: Adapter) -> None:
        stop_all_but(adapter, [RUNNER])
        assert adapter.shows() == STOPPED
        assert adapter.editor.focus == F
        assert adapter.editor.arrow == (F, 10)
        assert adapter.resumed == []

    @pytest.mark.parametrize("model", [VSCodeModel, NvimDapModel])
    def test_continued_before_threads_is_answered_is_overwritten(self, model: type[Editor]) -> None:
        adapter = one_of(model())
        adapter.answering = False
        stop_all_but(adapter, [RUNNER])
        adapter.answer()
        assert adapter.shows()[RUNNER] == "stopped"

    def test_continued_before_threads_is_answered_makes_dape_miss_the_stop(self) -> None:
        adapter = one_of(DapeModel())
        adapter.answering = False
        adapter.stopped(F, every=True)
        adapter.continued(RUNNER, every=False)
        adapter.answer()
        assert "stopped" not in adapter.shows().values()
        assert adapter.editor.arrow is None

    def test_continued_drops_the_arrow_of_dape(self) -> None:
        adapter = one_of(DapeModel())
        adapter.stopped(F, every=True)
        adapter.continued(RUNNER, every=False)
        assert adapter.editor.arrow is None

    @pytest.mark.parametrize("count", [4, 1024])
    def test_vscode_asks_five_things_however_many_ranks(self, count: int) -> None:
        adapter = Adapter(VSCodeModel(), count)
        adapter.start()
        stop_all_but(adapter, [RUNNER])
        assert isinstance(adapter.editor, VSCodeModel)
        adapter.take(adapter.editor.tick_420ms_after_stop())
        asked = [command for command, _ in adapter.asked]
        assert asked == ["threads", "stackTrace", "scopes", "variables"]  # C ends the fetching
        adapter.stopped(F, every=True)
        adapter.take(adapter.editor.tick_420ms_after_stop())
        assert len(adapter.asked) == 4 + 5


class TestLateStopper:
    def test_vscode_with_the_hint_keeps_focus_and_paints_one_line(self) -> None:
        adapter = one_of(VSCodeModel())
        stop_all_but(adapter, [RUNNER, X])
        adapter.stopped(F, every=True, preserveFocusHint=True)
        adapter.continued(RUNNER, every=False)
        assert isinstance(adapter.editor, VSCodeModel)
        assert adapter.shows() == STOPPED
        assert adapter.editor.focus == F
        assert adapter.editor.painted == [(F, 10)]

    def test_vscode_focuses_nothing_when_the_first_stop_has_the_hint(self) -> None:
        adapter = one_of(VSCodeModel())
        adapter.stopped(F, every=True, preserveFocusHint=True)
        assert adapter.editor.focus is None

    def test_nvim_dap_takes_a_pause_of_one_thread_and_resumes_nobody(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER, X])
        adapter.stopped(X, every=False, reason="pause")
        assert adapter.shows() == STOPPED
        assert adapter.editor.arrow == (F, 10)
        assert adapter.resumed == []

    @pytest.mark.parametrize(("reason", "every"), [("breakpoint", False), ("pause", True)])
    def test_nvim_dap_resumes_any_other_late_stopper(self, reason: str, every: bool) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER, X])
        adapter.stopped(X, every=every, reason=reason)
        assert adapter.resumed == [X]

    def test_nvim_dap_without_auto_continue_resumes_nobody(self) -> None:
        adapter = one_of(NvimDapModel(auto_continue_if_many_stopped=False))
        stop_all_but(adapter, [RUNNER, X])
        adapter.stopped(X, every=False)
        assert adapter.resumed == []
        assert adapter.editor.focus == F

    def test_nvim_dap_loses_its_arrow_by_the_hint(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER])
        adapter.stopped(F, every=True, preserveFocusHint=True)
        assert adapter.editor.arrow is None

    def test_dape_keeps_its_thread_when_both_stops_come_at_once(self) -> None:
        adapter = one_of(DapeModel())
        stop_all_but(adapter, [RUNNER, X])
        adapter.answering = False
        adapter.stopped(X, every=False, preserveFocusHint=True)
        assert adapter.editor.focus == X  # the hint does not help
        adapter.stopped(F, every=False)
        adapter.answer()
        assert adapter.shows() == STOPPED
        assert adapter.editor.arrow == (F, 10)


class TestMovingTheFocus:
    def test_resumes_nobody(self, adapter: Adapter) -> None:
        stop_all_but(adapter, [RUNNER])
        if isinstance(adapter.editor, NvimDapModel):
            adapter.continued(F, every=False)
        stop_all_but(adapter, [RUNNER], focus=X)
        assert adapter.editor.focus == X
        assert adapter.editor.arrow == (X, 10)
        assert adapter.shows() == STOPPED
        assert adapter.resumed == []

    def test_nvim_dap_resumes_the_new_focus_unless_the_old_was_continued(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER])
        stop_all_but(adapter, [RUNNER], focus=X)
        assert adapter.resumed == [X]


class TestStep:
    def test_of_a_class_is_back_with_the_same_focus(self, adapter: Adapter) -> None:
        stop_all_but(adapter, [RUNNER])
        for line in range(11, 16):
            adapter.take(adapter.editor.press_f10())
            assert adapter.asked[-1] == ("next", F)
            adapter.continued(F, every=True)
            assert "stopped" not in adapter.shows().values()
            adapter.lines[F] = line
            adapter.stopped(F, every=True, reason="step")
            adapter.continued(RUNNER, every=False)
            if isinstance(adapter.editor, DapeModel):
                adapter.stopped(F, every=False, reason="step")
            assert adapter.editor.arrow == (F, line)
            assert adapter.shows() == STOPPED
        assert adapter.resumed == []

    def test_dape_misses_a_stop_that_overtakes_the_response(self) -> None:
        adapter = one_of(DapeModel())
        stop_all_but(adapter, [RUNNER])
        adapter.answering = False
        adapter.take(adapter.editor.press_f10())
        adapter.stopped(F, every=True, reason="step")
        adapter.answer()
        assert "stopped" not in adapter.shows().values()

    def test_vscode_shows_the_others_as_stopped_when_only_answered(self) -> None:
        adapter = one_of(VSCodeModel())
        stop_all_but(adapter, [])
        adapter.take(adapter.editor.press_f10())
        assert adapter.shows() == {1: "stopped", 2: "running", 3: "stopped", 4: "stopped"}

    def test_vscode_jumps_to_the_oldest_stop_after_800_ms(self) -> None:
        editor = VSCodeModel()
        adapter = one_of(editor)
        for thread in (X, OTHER, F):
            adapter.stopped(thread, every=False)
        adapter.take(editor.press_f10())
        adapter.take(editor.tick_800ms_after_step())
        assert editor.focus == X

    @pytest.mark.parametrize("last", ["stopped", "continued"])
    def test_vscode_stays_when_the_last_word_was_not_about_the_focus(self, last: str) -> None:
        editor = VSCodeModel()
        adapter = one_of(editor)
        stop_all_but(adapter, [])
        adapter.take(editor.press_f10())
        if last == "stopped":
            adapter.stopped(X, every=False, preserveFocusHint=True)
        else:
            adapter.continued(RUNNER, every=False)
        adapter.take(editor.tick_800ms_after_step())
        assert editor.focus == F


class TestContinue:
    def test_of_all_shows_all_running(self, adapter: Adapter) -> None:
        stop_all_but(adapter, [])
        adapter.take(adapter.editor.press_f5())
        adapter.continued(F, every=True)
        assert set(adapter.shows().values()) == {"running"}
        assert adapter.editor.arrow is None

    def test_nvim_dap_does_not_believe_the_response(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [])
        adapter.take(adapter.editor.press_f5())
        assert adapter.shows()[X] == "stopped"

    def test_vscode_reuses_the_last_value_when_the_response_has_none(self) -> None:
        adapter = one_of(VSCodeModel())
        adapter.all_continued = None
        stop_all_but(adapter, [RUNNER])  # its C says "not all"
        adapter.take(adapter.editor.press_f5())
        assert adapter.shows() == {1: "running", 2: "running", 3: "stopped", 4: "stopped"}

    def test_of_one_row_says_which(self, adapter: Adapter) -> None:
        adapter.all_continued = False
        stop_all_but(adapter, [RUNNER])
        adapter.take(adapter.editor.press_row_button(X, "continue"))
        assert adapter.resumed == [X]
        assert adapter.shows()[X] == "running"
        assert adapter.shows()[OTHER] == "stopped"


class TestThreads:
    def test_vscode_asks_once_for_many_new_threads(self) -> None:
        editor = VSCodeModel()
        adapter = one_of(editor)
        for thread in range(5, 9):
            adapter.names[thread] = f"rank {thread - 1}"
            adapter.event("thread", reason="started", threadId=thread)
        adapter.take(editor.tick_100ms_after_thread_started())
        assert adapter.asked == [("threads", None)]
        assert len(editor.threads) == 8

    def test_vscode_renames_a_stopped_row(self) -> None:
        editor = VSCodeModel()
        adapter = one_of(editor)
        stop_all_but(adapter, [RUNNER])
        adapter.names[X] = "renamed"
        adapter.event("thread", reason="started", threadId=X)
        adapter.take(editor.tick_100ms_after_thread_started())
        assert editor.threads[X] == ("renamed", "stopped")

    @pytest.mark.parametrize("model", [NvimDapModel, DapeModel])
    def test_others_take_a_renamed_thread_for_a_running_one(self, model: type[Editor]) -> None:
        adapter = one_of(model())
        stop_all_but(adapter, [RUNNER])
        adapter.event("thread", reason="started", threadId=X)
        assert adapter.shows()[X] == "running"

    def test_vscode_forgets_a_stop_whose_thread_was_renamed_meanwhile(self) -> None:
        adapter = one_of(VSCodeModel())
        adapter.answering = False
        adapter.stopped(F, every=True)
        adapter.event("thread", reason="started", threadId=F)
        adapter.answer()
        assert adapter.editor.focus is None

    def test_the_focus_leaves_and_the_next_one_takes_over(self, adapter: Adapter) -> None:
        stop_all_but(adapter, [])
        del adapter.names[F]
        if isinstance(adapter.editor, NvimDapModel):
            adapter.continued(F, every=False)
        adapter.event("thread", reason="exited", threadId=F)
        adapter.stopped(X, every=True)
        assert adapter.editor.arrow == (X, 10)
        assert F not in adapter.shows()
        assert adapter.resumed == []

    def test_nvim_dap_holds_on_to_a_thread_that_only_exited(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [])
        del adapter.names[F]
        adapter.event("thread", reason="exited", threadId=F)
        adapter.stopped(X, every=True)
        assert adapter.resumed == [X]
