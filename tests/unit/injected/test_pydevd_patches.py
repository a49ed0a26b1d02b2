"""Patches of pydevd one by one, on the classes of a real debugpy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

import pytest

from dap_mux.rank.injected.attach import pydevd_patches, reports, tracing
from tests.unit.injected.conftest import Writer

SUSPENDED: Final = 2  # pydevd's


def test_a_watch_is_compiled_once(debugger: Any) -> None:
    values = import_module("_pydevd_bundle.pydevd_vars")
    assert values.compile_as_eval("1 + 1") is not values.compile_as_eval("1 + 1")
    for _ in range(2):
        pydevd_patches.compile_watches_once(debugger)
    assert values.compile_as_eval("1 + 1") is values.compile_as_eval("1 + 1")
    with pytest.raises(SyntaxError):
        values.compile_as_eval("1 +")


def test_a_continue_is_answered_where_no_thread_is_suspended(debugger: Any) -> None:
    told: list[str] = []
    for _ in range(2):
        pydevd_patches.continue_always_replies(debugger)
    suspended = debugger.threads_suspended_single_notification
    suspended.add_on_resumed_callback(lambda: told.append("at once"))
    assert told == ["at once"]
    with suspended.notify_thread_suspended("1", SimpleNamespace(), 105):
        suspended.add_on_resumed_callback(lambda: told.append("on resume"))
        assert told == ["at once"]
    assert told == ["at once", "on resume"]


def test_an_evaluate_of_a_client_that_has_left_is_not_answered(
    debugger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Any = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI

    def request_exec_or_evaluate_json(*_: object) -> None:
        """It takes its time."""

    monkeypatch.setattr(api, "request_exec_or_evaluate_json", request_exec_or_evaluate_json)
    pydevd_patches.drop_stale_evaluates(debugger)
    debugger.writer = Writer(debugger.writer.sock)  # as the one of an adapter that is started again
    pydevd_patches.drop_stale_evaluates(debugger)
    requests = [SimpleNamespace(seq=seq) for seq in (3, 4, 5)]
    for request in requests[:2]:
        api().request_exec_or_evaluate_json(debugger, request, "1")

    def answer(request: Any) -> Any:
        return SimpleNamespace(as_dict={"request_seq": request.seq})

    debugger.writer.add_command(answer(requests[0]))
    debugger.on_disconnect()
    api().request_exec_or_evaluate_json(debugger, requests[2], "1")
    for request in requests[1:]:
        debugger.writer.add_command(answer(request))
    debugger.writer.add_command(SimpleNamespace(as_dict=None))
    assert [command.as_dict for command in debugger.writer.sent] == [
        {"request_seq": 3},
        {"request_seq": 5},
        None,
    ]
    assert not pydevd_patches._unanswered


def test_a_thread_that_stops_after_its_debugger_has_left_runs_on(
    debugger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    api: Any = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    monkeypatch.setattr(api, "request_resume_thread", lambda _, thread: told.append(thread))
    monkeypatch.setattr(type(debugger), "do_wait_suspend", lambda *_: told.append("waits"))
    for _ in range(2):
        pydevd_patches.resume_while_detached(debugger)
    debugger.do_wait_suspend()
    debugger.on_disconnect()
    debugger.do_wait_suspend()
    debugger.on_initialize()
    debugger.do_wait_suspend()
    assert told == ["waits", "*", "waits", "waits"]


@pytest.mark.parametrize("waits", [True, False])
def test_what_is_configured_waits_no_longer(
    debugger: Any, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    told: list[str] = []

    def cancel() -> None:
        told.append("cancelled")
        if not waits:
            raise RuntimeError("wait_for_client has not been called")

    wait_for_client = import_module("debugpy.server.api").wait_for_client
    monkeypatch.setattr(wait_for_client, "cancel", cancel)
    for _ in range(2):
        pydevd_patches.end_wait_once_configured(debugger)
    debugger.on_configuration_done()
    assert told == ["cancelled"]


def test_a_stop_without_a_stack_is_sent_as_it_was(
    debugger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the thread has none; until the client leaves."""
    api: Any = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    left: list[object] = []
    monkeypatch.setattr(api, "request_disconnect", lambda *_, **named: left.append(named))
    factory = debugger.cmd_factory
    thread = threading.Thread()

    def events() -> list[Any]:
        stop = factory.make_thread_suspend_single_notification(debugger, "1", thread, 105)
        resume = factory.make_thread_resume_single_notification("1")
        return [{**command.as_dict, "seq": 0} for command in (stop, resume)]

    plain = events()
    reports.stop_with_stack(debugger)
    assert {reports.STOP, reports.RESUME} < vars(factory).keys()
    assert events() == plain
    api().request_disconnect(debugger, resume_threads=True)
    assert left == [{"resume_threads": True}]
    assert not {reports.STOP, reports.RESUME} & vars(factory).keys()


def test_a_thread_that_is_told_to_run_on_is_woken(
    debugger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    monkeypatch.setattr(api, "request_resume_thread", api.request_resume_thread)
    event = debugger._thread_events["pid_1_id_7"]
    api().request_resume_thread("*")
    assert not event.is_set(), "then debugpy does so itself: drop the patch"
    for _ in range(2):
        pydevd_patches.wake_to_run_on(debugger)
    api().request_resume_thread("*")
    assert event.is_set()


@pytest.fixture
def waiting(debugger: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """debugpy's records of threads that are suspended at a stop."""
    holder = import_module("_pydevd_bundle.pydevd_constants").GlobalDebuggerHolder
    monkeypatch.setattr(holder, "global_dbg", debugger)
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    infos = [debugger.set_additional_thread_info(thread) for thread in threads]
    for info in infos:
        info.is_in_wait_loop, info.pydev_state = True, SUSPENDED
    yield infos
    over.set()
    for thread in threads:
        thread.join()


def test_debugpy_wakes_any_thread_for_a_step(debugger: Any, waiting: list[Any]) -> None:
    thread_id = import_module("_pydevd_bundle.pydevd_constants").get_thread_id
    woken = []
    for info in waiting:
        event = debugger._thread_events[thread_id(info.weak_thread())]
        event.clear()
        info.update_stepping_info()
        woken.append(event.is_set())
    assert not all(woken), "drop the patch `wake_to_step`"


def test_a_thread_is_woken_to_step(
    debugger: Any, waiting: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = import_module("_pydevd_bundle.pydevd_comm")
    for kind in (commands.InternalThreadCommand, commands.InternalSetNextStatementThread):
        monkeypatch.setattr(kind, "do_it", kind.do_it)
        monkeypatch.setattr(kind, "wakes_to_step", True, raising=False)
        monkeypatch.delattr(kind, "wakes_to_step")
    info = waiting[0]
    monkeypatch.setattr(threading.current_thread(), "additional_info", info, raising=False)
    event = debugger._thread_events["pid_1_id_7"]
    for _ in range(2):
        pydevd_patches.wake_to_step(debugger)
    for state, wakes in ((SUSPENDED, False), (pydevd_patches.RUNS, True)):

        def evaluate_or_step(_: Any, state: int = state) -> None:
            info.pydev_state = state

        event.clear()
        commands.InternalThreadCommand("pid_1_id_7", evaluate_or_step).do_it(debugger)
        assert event.is_set() is wakes


def test_the_thread_for_time_limits_is_woken_for_the_earliest_alone(debugger: Any) -> None:
    for _ in range(2):
        pydevd_patches.wake_for_timeouts_only(debugger)
    kind: Any = import_module("_pydevd_bundle.pydevd_timeout")
    tracker = kind.TimeoutTracker(debugger)
    thread = tracker._thread = kind._TimeoutThread(debugger)  # not started: it processes nothing
    woken = []
    for seconds in (30.0, 31.0, 5.0, 30.0):
        thread._event.clear()
        with tracker.call_on_timeout(seconds, lambda: None):
            woken.append(thread._event.is_set())
    assert woken == [True, False, True, False]
    assert len(thread._handles) <= 3, "those that are over are not kept"


def test_a_time_limit_that_has_passed_is_told(debugger: Any) -> None:
    pydevd_patches.wake_for_timeouts_only(debugger)
    tracker = import_module("_pydevd_bundle.pydevd_timeout").TimeoutTracker(debugger)
    told = [threading.Event() for _ in range(3)]
    with tracker.call_on_timeout(0.05, told[0].set), tracker.call_on_timeout(0.1, told[1].set):
        assert told[1].wait(30.0)
    with tracker.call_on_timeout(0.05, told[2].set):
        assert told[2].wait(30.0)
    assert told[0].is_set()


def test_a_command_runs_untraced_in_a_thread_that_took_it_before(debugger: Any) -> None:
    """The thread is within debugpy's own loop over commands, which is replaced for later calls."""
    comm = import_module("_pydevd_bundle.pydevd_comm")
    info = debugger.set_additional_thread_info(threading.current_thread())
    traced: list[bool] = []
    command = comm.InternalThreadCommandForAnyThread(
        "*", lambda _: traced.append(not info.is_tracing)
    )
    for _ in range(2):
        tracing.run_each_command_untraced(debugger)
    command.do_it(debugger)
    assert traced == [False]
    assert not info.is_tracing


def test_exceptions_from_another_process_stop_nowhere(debugger: Any) -> None:
    """tblib raises NameError in frames that have the user's file names."""
    pydevd_patches.skip_copied_exceptions(debugger)
    code = compile(f"raise {pydevd_patches.MADE_UP}", "<string>", "exec")
    with pytest.raises(NameError) as made:
        exec(code, {})
    with pytest.raises(ZeroDivisionError) as own:
        _ = 1 / 0
    everything = SimpleNamespace(ignore_libraries=False)
    excluded = debugger.exclude_exception_by_filter
    assert made.tb.tb_next is not None
    assert excluded(everything, made.tb.tb_next)
    assert not excluded(everything, own.tb)
    assert not excluded(everything, made.tb)  # somebody wants only uncaught ones: the copy counts
    debugger.break_on_user_uncaught_exceptions = {"BaseException": everything}
    assert excluded(everything, made.tb)
    assert not excluded(everything, own.tb)


def test_the_text_of_an_exception_is_cut(debugger: Any) -> None:
    comm = import_module("_pydevd_bundle.pydevd_comm")
    schema = import_module("_pydevd_bundle._debug_adapter.pydevd_schema")
    for _ in range(2):
        pydevd_patches.bound_exception_texts(debugger)
    arguments = schema.EvaluateArguments(expression="1 / 0", context="repl")
    request = schema.EvaluateRequest(arguments=arguments, seq=1)
    error = RuntimeError("x" * 10_000_000)
    comm._evaluate_response_return_exception(debugger, request, type(error), error, None)
    [answer] = debugger.writer.sent
    assert len(str(answer.as_dict)) < 3 * pydevd_patches.MAX_TEXT
    assert "RuntimeError: xxx" in answer.as_dict["message"]
    assert answer.as_dict["body"]["result"].endswith("x...")
    comm._evaluate_response(debugger, request, str(error))
    assert debugger.writer.sent[-1].as_dict["body"]["result"] == str(error), "a result is kept"
