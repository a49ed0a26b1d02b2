"""JSON-RPC as pygls has it, but that requests which cannot be handled are answered."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MalformedRequest:
    """A request whose parameters are not those of its method."""

    id: int | str
    method: str


class LspProtocol(LanguageServerProtocol):
    """A protocol that refuses requests which are malformed or come at the wrong time.

    pygls tells the user of malformed ones instead, and ignores those after `shutdown`: an editor
    would wait for the response.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Decode a message. Raises JsonRpcException for a malformed notification or response."""
        try:
            return super().structure_message(data)
        except JsonRpcException:
            id, method = data.get("id"), data.get("method")
            if not isinstance(id, int | str) or not isinstance(method, str):
                raise
            return MalformedRequest(id, method)

    def handle_message(self, message: Any) -> None:
        """Handle a decoded message."""
        refusal = self._refusal(message)
        if refusal is None:
            super().handle_message(message)
            return
        log.info("%s", refusal)
        if hasattr(message, "id"):
            self._send_response(message.id, error=refusal.to_response_error())

    def _refusal(self, message: Any) -> JsonRpcException | None:
        """Return why a request or a notification is not handled."""
        method = getattr(message, "method", None)
        if method is None or method == types.EXIT:
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest(f"{method} after shutdown")
        if self._workspace is None and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized(f"{method} before initialize")
        if isinstance(message, MalformedRequest):
            return JsonRpcInvalidParams(f"malformed parameters of {method}")
        return None
