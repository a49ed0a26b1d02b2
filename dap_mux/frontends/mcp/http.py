"""The agent's tools over HTTP: on loopback, with the token, for no page of a browser."""

from __future__ import annotations

import socket
from collections.abc import Callable

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server

from dap_mux.frontends.mcp.answers import Unable, failure

PATH = "/mcp"
REFUSED = "pass the token in a header, `Authorization: Bearer TOKEN`: it is in {file}"


class Guarded:
    """Passes on requests that show the token."""

    def __init__(self, app: ASGIApp, admits: Callable[[str], bool], file: str) -> None:
        self._app = app
        self._admits = admits
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI request."""
        app = self._app
        if scope["type"] != "lifespan":
            scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self._admits(token.strip()):
                body = failure(Unable("no-token", REFUSED.format(file=self._file)))
                app = JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})
        await app(scope, receive, send)


async def serve(
    server: MCPServer[None], listening: socket.socket, admits: Callable[[str], bool], file: str
) -> None:
    """Serve until Ctrl-C. `admits`: whether a token is the one in `file`."""
    port = listening.getsockname()[1]
    names = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    # An agent sends no Origin: what does is a page of a browser.
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[])
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, transport_security=security
    )
    app.add_middleware(Guarded, admits=admits, file=file)
    config = Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    await Server(config).serve([listening])
