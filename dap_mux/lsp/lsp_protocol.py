"""JSON-RPC as pygls has it, but that every malformed request is answered."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MalformedRequest:
    """A request whose parameters are not those of its method."""

    id: int | str
    method: str


class LspProtocol(LanguageServerProtocol):
    """A protocol that answers malformed requests with the error InvalidParams.

    pygls reports them to the user instead, and an editor would wait for the response.
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
        if not isinstance(message, MalformedRequest):
            super().handle_message(message)
            return
        log.info("malformed parameters of %s", message.method)
        error = JsonRpcInvalidParams(f"malformed parameters of {message.method}")
        self._send_response(message.id, error=error.to_response_error())
