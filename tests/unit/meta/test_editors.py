"""The editor models go wrong where their editors do; tests/engine shows that we spare them that.

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


def stop_all_but(adapter: Adapter, runners: list[int], focus: int = F) -> None:
    """Announce a first stop in the way that suits the editor."""
    adapter.stopped(focus, every=True)
    for runner in runners:
        adapter.continued(runner, every=False)
    if runners and isinstance(adapter.editor, DapeModel):
        adapter.stopped(focus, every=False)


def one_of(editor: Editor) -> Adapter:
    made = Adapter(editor)
    made.start()
    return made


class TestSomeStoppedOneRunning:
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


class TestLateStopper:
    def test_vscode_focuses_nothing_when_the_first_stop_has_the_hint(self) -> None:
        adapter = one_of(VSCodeModel())
        adapter.stopped(F, every=True, preserveFocusHint=True)
        assert adapter.editor.focus is None

    @pytest.mark.parametrize(("reason", "every"), [("breakpoint", False), ("pause", True)])
    def test_nvim_dap_resumes_any_other_late_stopper(self, reason: str, every: bool) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER, X])
        adapter.stopped(X, every=every, reason=reason)
        assert adapter.resumed == [X]

    def test_nvim_dap_loses_its_arrow_by_the_hint(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER])
        adapter.stopped(F, every=True, preserveFocusHint=True)
        assert adapter.editor.arrow is None


class TestMovingTheFocus:
    def test_nvim_dap_resumes_the_new_focus_unless_the_old_was_continued(self) -> None:
        adapter = one_of(NvimDapModel())
        stop_all_but(adapter, [RUNNER])
        stop_all_but(adapter, [RUNNER], focus=X)
        assert adapter.resumed == [X]


class TestStep:
    def test_dape_misses_a_stop_that_overtakes_the_response(self) -> None:
        adapter = one_of(DapeModel())
        stop_all_but(adapter, [RUNNER])
        adapter.answering = False
        adapter.take(adapter.editor.press_f10())
        adapter.stopped(F, every=True, reason="step")
        adapter.answer()
        assert "stopped" not in adapter.shows().values()

    def test_vscode_jumps_to_the_oldest_stop_after_800_ms(self) -> None:
        editor = VSCodeModel()
        adapter = one_of(editor)
        for thread in (X, OTHER, F):
            adapter.stopped(thread, every=False)
        adapter.take(editor.press_f10())
        adapter.take(editor.tick_800ms_after_step())
        assert editor.focus == X


class TestContinue:
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


class TestThreads:
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
