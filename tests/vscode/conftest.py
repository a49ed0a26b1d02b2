"""One browser for all tests, one server for each set of extensions, one window for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer, Missing, chromium, entry, serving
from tests.vscode.scene import REPOSITORY, OpenWindow, copied_example
from tests.vscode.workbench import Window, browsing, new_window

HERE: Final = Path(__file__).resolve().parent
PACKAGE: Final = REPOSITORY / "vscode-extension/dist/dap-mux.vsix"
FAILURES: Final = REPOSITORY / "build" / "vscode-failures"
_FAILED: Final = pytest.StashKey[bool]()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, without a screen."""
    try:
        entry()
        program = chromium()
    except Missing as why:
        pytest.skip(str(why))
    async with browsing(program) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stock_server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CodeServer]:
    """A VS Code that knows nothing of us: it has type `debugpy` alone."""
    folder = tmp_path_factory.mktemp("stock")
    async with serving(folder, linked=[HERE / "debugpy-stand-in"]) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def own_server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CodeServer]:
    """A clean profile into which our package is installed, and nothing else."""
    if not PACKAGE.exists():
        pytest.skip("the extension is not packaged: run make vsix")
    folder = tmp_path_factory.mktemp("own")
    async with serving(folder, packages=[PACKAGE]) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def both_server(
    own_server: CodeServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CodeServer]:
    """Our package, and beside it what brings the stock type `debugpy`."""
    folder = tmp_path_factory.mktemp("both")
    linked = [HERE / "debugpy-stand-in"]
    async with serving(folder, linked=linked, packages=[PACKAGE]) as server:
        yield server


@pytest.fixture
def quiet(own_server: CodeServer) -> Iterator[None]:
    """The user wants no session that comes by itself."""
    own_server.settings(**{"dapMux.announce": False})
    yield
    own_server.settings()


@pytest_asyncio.fixture(loop_scope="session")
async def user(tmp_path: Path) -> AsyncIterator[User]:
    """A user whose processes all end with the test, in whose folder the example lies."""
    somebody = User(tmp_path)
    copied_example(somebody)
    yield somebody
    await somebody.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_window(
    browser: Browser, user: User, request: pytest.FixtureRequest
) -> AsyncIterator[OpenWindow]:
    """`await open_window(server)`: a window on the user's folder; kept in a picture if it fails."""
    async with AsyncExitStack() as stack:

        async def opened(server: CodeServer) -> Window:
            window = await stack.enter_async_context(_window(browser, user, request.node))
            await window.open(server.port)
            return window

        yield opened


@asynccontextmanager
async def _window(browser: Browser, user: User, test: pytest.Item) -> AsyncIterator[Window]:
    window = await new_window(browser, user.folder)
    yield window
    if test.stash.get(_FAILED, False):
        await window.save(FAILURES / test.name)
        print(f"the window as it was: {FAILURES / test.name}.png")
    await window.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember for the window's fixture whether the test has failed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
