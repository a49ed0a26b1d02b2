"""GET from a REST server: TLS is verified, the token is for this server only, all is bounded.

http.client knows no event loop, so a request has a thread of its own; it is a daemon, and is cut
off when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio

from dap_mux.pure.errors import NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import one_line
from dap_mux.system.user_files import NoHome, check_private, expand_home, open_regular

REQUEST_TIMEOUT_S: Final = 30.0
MAX_ANSWER: Final = 16 * 1024 * 1024  # bytes; a job of ten thousand tasks has 5 MB
MAX_REDIRECTS: Final = 3
MAX_TOKEN: Final = 16 * 1024  # characters; a signed one of OpenPAI has some 300
TOKEN_FILE: Final = "OPENPAI_TOKEN_FILE"  # noqa: S105  (its name)
TOKEN: Final = "OPENPAI_TOKEN"  # noqa: S105  (its name)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_TOKEN: Final = re.compile(r"[!-~]+")
_CHUNK: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Answer:
    """A server's answer."""

    status: int
    body: bytes


def token_of(environ: Mapping[str, str]) -> str:
    """Return the user's token, '' if there is none.

    It is in the file that OPENPAI_TOKEN_FILE names, which only its owner may read, or else in
    OPENPAI_TOKEN. Raises `Refused`, `UsageError`, which never quote it.
    """
    path = environ.get(TOKEN_FILE, "")
    text, source = (_in_file(path), path) if path else (environ.get(TOKEN, ""), TOKEN)
    text = text.strip()
    if (path or text) and not (_TOKEN.fullmatch(text) and len(text) <= MAX_TOKEN):
        raise Refused(
            f"{source} holds no token: it is one word, as OpenPAI's profile page shows it"
        )
    return text


def _in_file(name: str) -> str:
    try:
        path = expand_home(name)
        with open_regular(path) as file:
            check_private(path, os.fstat(file.fileno()))
            return file.read(MAX_TOKEN + 2).decode("ascii", "replace")
    except NoHome as error:
        raise UsageError(f"{TOKEN_FILE}: {error}") from None
    except OSError as error:
        raise UsageError(f"{TOKEN_FILE}: {name} cannot be read: {error.strerror}") from None


async def get(url: str, token: str, *, within: float = REQUEST_TIMEOUT_S) -> Answer:
    """Return the answer, whatever its status. Raises `NothingToConnect` if there is none.

    A redirect is followed on the same server only: no other gets to see the token.
    """
    request = _Request(url, token, time.monotonic() + within)
    answered: Future[Answer] = Future()
    answered.set_running_or_notify_cancel()  # the thread may set it, also if nobody waits any more

    def work() -> None:
        try:
            answered.set_result(request.answer())
        except (NothingToConnect, Refused) as error:
            answered.set_exception(error)

    threading.Thread(target=work, name=f"GET {urlsplit(url).netloc}", daemon=True).start()
    try:
        with anyio.fail_after(within):
            return await asyncio.wrap_future(answered)
    except TimeoutError:
        raise NothingToConnect(f"{_server_of(url)}: no answer within {within:g} s") from None
    finally:
        request.cut()


@dataclass
class _Request:
    """One request, run in a thread; `cut` is called from another."""

    url: str
    token: str = field(repr=False)
    deadline: float
    _connection: HTTPConnection | None = None

    def answer(self) -> Answer:
        """Return the answer. Raises `NothingToConnect`, `Refused`."""
        try:
            return self._follow()
        except (HTTPException, OSError, ValueError) as error:
            raise NothingToConnect(f"{_server_of(self.url)}: {_why(error)}") from None

    def cut(self) -> None:
        """End it at once, wherever it is."""
        sock = self._connection.sock if self._connection else None
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS, which is in use

    def _follow(self) -> Answer:
        url = self.url
        for _ in range(1 + MAX_REDIRECTS):
            answer, location = self._ask(urlsplit(url))
            if answer.status not in _REDIRECTS or not location:
                return answer
            there = urljoin(url, location)
            if _origin(urlsplit(there)) != _origin(urlsplit(self.url)):
                raise Refused(
                    f"{_server_of(self.url)} redirects to {_server_of(there)}, which is not "
                    "followed: the token is not for that server. If it is yours, name it instead"
                )
            url = there
        raise NothingToConnect(f"{_server_of(self.url)} redirects in a circle")

    def _ask(self, url: SplitResult) -> tuple[Answer, str]:
        """Return the answer, and where it redirects to."""
        self._connection = connection = self._connect(url)
        try:
            headers = {"Accept": "application/json", "User-Agent": "dap-mux"}
            if self.token:
                headers["Authorization"] = f"Bearer {self.token}"
            path = url.path + (f"?{url.query}" if url.query else "")
            connection.request("GET", path, headers=headers)
            # `getresponse` leaves it open where the server hangs up.
            with closing(HTTPResponse(connection.sock, method="GET")) as response:
                response.begin()
                location = response.getheader("Location") or ""
                return Answer(response.status, self._body(response)), location
        finally:
            connection.close()

    def _connect(self, url: SplitResult) -> HTTPConnection:
        timeout = max(self.deadline - time.monotonic(), 0.001)
        host = url.hostname or ""
        if url.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(host, url.port, timeout=timeout, context=context)
        return HTTPConnection(host, url.port, timeout=timeout)

    def _body(self, response: HTTPResponse) -> bytes:
        parts, size = [], 0
        while chunk := response.read1(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_ANSWER:
                raise NothingToConnect(
                    f"{_server_of(self.url)}: the answer is longer than {MAX_ANSWER} bytes"
                )
        return b"".join(parts)


def _origin(url: SplitResult) -> tuple[str, str, int | None]:
    return url.scheme, url.hostname or "", url.port or _PORTS.get(url.scheme)


def _server_of(url: str) -> str:
    """Return `https://host:port`, for messages."""
    parts = urlsplit(url)
    return one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")[:200]


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate cannot be verified ({error.verify_message}); if an authority of "
            "your own signs it, name that authority's certificate in SSL_CERT_FILE"
        )
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return one_line(text)[:200] or type(error).__name__
