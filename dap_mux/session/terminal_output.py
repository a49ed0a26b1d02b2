"""Output for the user at the terminal: messages, the log, and what ranks print."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dap_mux.pure.printable import one_line, printable
from dap_mux.pure.protocol.rank_messages import READY_MARK

LOG_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
POLL_INTERVAL_S: Final = 0.1  # of the ranks' log files
MAX_READ: Final = 256 * 1024
_RED: Final = "\x1b[31m"
_RESET: Final = "\x1b[0m"


def say(text: str) -> None:
    """Print a message to standard error, which may be closed already."""
    _print(f"dap-mux: {printable(text)}")


def say_more(line: str) -> None:
    """Print a line that belongs to the message before it."""
    _print(printable(line))


def alert(text: str) -> None:
    """Print a message that must not be overlooked: in red where standard error shows colours."""
    line = f"dap-mux: {printable(text)}"
    _print(f"{_RED}{line}{_RESET}" if _shows_colours() else line)


def _print(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


def _shows_colours() -> bool:
    """Whether standard error is a terminal with colours, and the user has not declined them."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return sys.stderr.isatty()


def set_up_log(
    verbosity: int, log_dir: Path | None, levels: Mapping[str, int] | None = None
) -> None:
    """Log to standard error as `-v` says, and everything to `dap-mux.log` in `log_dir`.

    Loggers are named by component and rank: `dap_mux.rank.3`, `dap_mux.client`; `levels` has those
    that standard error shows at another level than `-v` says. Messages of the event loop are
    included.
    """
    stream = _StandardError()
    by_component = _ByComponent(LOG_LEVELS[min(verbosity, 2)], levels or {})
    stream.setLevel(by_component.least)
    stream.addFilter(by_component)
    stream.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    handlers: list[logging.Handler] = [stream]
    if log_dir is not None:
        log_dir.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(log_dir / "dap-mux.log", encoding="utf-8")
        file.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handlers.append(file)
    # Records below this level are not even created: a thousand ranks log a lot.
    least = min(handler.level for handler in handlers)
    for name, level in (("dap_mux", max(least, logging.DEBUG)), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = False
        logger.handlers = handlers


class _ByComponent(logging.Filter):
    """Lets a record pass at the level of its component, or of the next above it."""

    def __init__(self, level: int, levels: Mapping[str, int]) -> None:
        super().__init__()
        self._levels = {"": level} | {f"dap_mux.{name}": level for name, level in levels.items()}
        self.least = min(self._levels.values())

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether it is shown."""
        name = record.name
        while name not in self._levels:
            name = name.rpartition(".")[0]
        return record.levelno >= self._levels[name]


class _StandardError(logging.Handler):
    """The current standard error, which a console's prompt may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record; one that cannot be formatted costs the session nothing."""
        try:
            _print(self.format(record))
        except Exception:  # noqa: BLE001  (as handlers do)
            self.handleError(record)


class SafeFormatter(logging.Formatter):
    """Escapes messages, which may quote a rank: no control characters, no additional lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's own name)
        """Format the message; a traceback after it keeps its lines."""
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Format a traceback, whose last line may quote a rank."""
        return printable(super().formatException(ei))


class Echo:
    """Follows log files and repeats their lines on standard output, each behind its label.

    Ranks write to files, not to a pipe of ours, so they are not affected when we end.
    """

    def __init__(self, labels: Mapping[Path, str]) -> None:
        self._tails = [_Tail(path, label) for path, label in labels.items()]

    async def follow(self) -> None:
        """Repeat new lines until cancelled."""
        while True:
            self.catch_up()
            await asyncio.sleep(POLL_INTERVAL_S)

    def catch_up(self, *, final: bool = False) -> None:
        """Repeat the lines since the last call; `final`: an unfinished one, too."""
        for tail in self._tails:
            for line in tail.lines(final=final):
                if READY_MARK not in line:
                    print(line, flush=True)  # noqa: T201


class _Tail:
    """The new lines of one growing file."""

    def __init__(self, path: Path, label: str) -> None:
        self._path = path
        self._label = label
        self._at = 0
        self._rest = b""

    def lines(self, *, final: bool) -> list[str]:
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read(None if final else MAX_READ)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if final and self._rest:
            whole.append(self._rest)
            self._rest = b""
        return [self._label + printable(line.decode("utf-8", "replace")) for line in whole]
