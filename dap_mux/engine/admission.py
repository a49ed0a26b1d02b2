"""The token: which clients have to show it, and what they may request before that."""

from __future__ import annotations

from typing import Any, Final

BEFORE: Final = frozenset({"initialize", "attach", "launch", "disconnect"})
MISSING: Final = (
    "this session requires a token: add it to the attach configuration as `token`. It is in the "
    "token file that the session was started with, or in the session file on its machine"
)
WRONG: Final = "wrong token: `token` in the attach configuration is not this session's token"


class Token:
    """A session's token. It shows itself nowhere: neither by `repr` nor by `str`."""

    __slots__ = ("_bytes",)

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()

    def matches(self, offered: str) -> bool:
        """Compare in a time that tells nothing about where the two differ."""
        from hmac import compare_digest  # with OpenSSL, which most starts need not load

        return compare_digest(self._bytes, offered.encode())


# The shell knows who is at the other end of a connection, and says of each client whether it is
# trusted as it is. All others show the session's token as the attach argument `token`; until then
# they are told who we are (`initialize`), and nothing of what they say goes any further.
def problem(token: Token | None, offered: str, *, trusted: bool) -> str:
    """Return why a client may not come in, '' if it may; a wrong token is wrong from anybody."""
    if token is None or (trusted and not offered):
        return ""
    if not offered:
        return MISSING
    return "" if token.matches(offered) else WRONG


def without_token(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return attach arguments to be kept, compared and passed on."""
    return {key: value for key, value in arguments.items() if key != "token"}
