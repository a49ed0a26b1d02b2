"""Fixtures for every test, and the rule that a skip is a failure where all must be there."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import settings

from dap_mux.client import DapClient
from tests.support.clients.conversation import Conversation
from tests.support.faults.late_messages import late_messages
from tests.support.faults.shaking import shaken
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import HOST, Rank, debugpy_ranks

_REQUIRE_ALL = "DAP_MUX_REQUIRE_ALL"


def rounds(all_rounds: int) -> int:
    """Return how often a randomised test repeats: a quarter of it locally, all in CI."""
    return all_rounds if os.environ.get(_REQUIRE_ALL) == "1" else -(-all_rounds // 4)


# Property tests that set no number of examples draw Hypothesis's own 100.
settings.register_profile("rounds", settings.get_profile("ci"), max_examples=rounds(100))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate", action="store_true", help="write the golden transcripts of tests/engine"
    )
    parser.addoption(
        "--shake", type=int, default=0, help="pause so many of the run's processes at a time"
    )
    parser.addoption("--late", action="store_true", help="make messages late, at random")


def pytest_configure(config: pytest.Config) -> None:
    """What tests start has Ctrl-C, which a shell's background job ignores, and Python's defaults.

    Unbuffered `print` writes a line in pieces: those of ranks with one stdout would get mixed. And
    where no bytecode is kept each of some thousand processes compiles all of dap-mux anew. A pytest
    that a test runs would write into this one's report.
    """
    for setting in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"):
        os.environ.pop(setting, None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all is collected: thousands of tests are made, and none is garbage
    if hasattr(config, "workerinput"):
        return
    stack = ExitStack()
    config.add_cleanup(stack.close)
    if config.getoption("--late"):
        stack.enter_context(late_messages())
    if config.getoption("--shake"):
        stack.enter_context(shaken(config.getoption("--shake")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that tests side by side end together."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Collect garbage from now on, and never look through the tests themselves for it."""
    gc.freeze()
    gc.enable()


class Connect(Protocol):
    """Connect a client whose every message is checked.

    `strict=False` is for debugpy's own port, `all_answered=False` for a server that is killed.
    """

    async def __call__(
        self, port: int, *, host: str = HOST, strict: bool = True, all_answered: bool = True
    ) -> DapClient: ...


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Clients that are closed at the end, and whose conversations must have been proper."""
    async with AsyncExitStack() as stack:

        async def connected(
            port: int, *, host: str = HOST, strict: bool = True, all_answered: bool = True
        ) -> DapClient:
            conversation = Conversation(f"client of {port}", strict=strict)
            client = await DapClient.connect(host, port, tap=conversation.tap)
            stack.callback(conversation.finish, expect_all_answered=strict and all_answered)
            stack.push_async_callback(client.close)
            return client

        yield connected


@pytest.fixture
async def start_ranks() -> AsyncIterator[Callable[..., Any]]:
    """`await start_ranks(n, script, ...)`: ranks as from `debugpy_ranks`, ended with the test."""
    async with AsyncExitStack() as stack:

        async def started(*args: Any, **kwargs: Any) -> list[Rank]:
            ranks: AbstractAsyncContextManager[list[Rank]] = debugpy_ranks(*args, **kwargs)
            return await stack.enter_async_context(ranks)

        yield started


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The file whose being there lets a program end."""
    return tmp_path / "done"


@pytest.fixture
def free_port() -> int:
    """A port on 127.0.0.1 that nobody uses."""
    return free_ports(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_if_all_required(item.nodeid, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _fail_if_all_required(collector.nodeid, report)
    return report


def _fail_if_all_required(name: str, report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get(_REQUIRE_ALL) == "1":
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{name}: {why}, and {_REQUIRE_ALL}=1 makes a skip a failure"
