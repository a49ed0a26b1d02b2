"""The folder's `.vscode/launch.json`: configurations that lead to a session or to ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dap_mux.user_files import parse_json, read_regular

LAUNCH: Final = Path(".vscode/launch.json")
# A string, or an extension of JSON: a comment, or a comma before a closing bracket.
_PARTS: Final = re.compile(
    r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*[\]}])', re.DOTALL
)


@dataclass(frozen=True)
class Configuration:
    """One configuration, of our type or for attaching with debugpy."""

    name: str
    values: dict[str, Any]

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f'{LAUNCH}, "{self.name}"'

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that it connects to; None if it launches, or contains a variable."""
        connect = self.values.get("connect")
        place = connect if isinstance(connect, dict) else self.values
        host, port = place.get("host", "127.0.0.1"), place.get("port")
        if isinstance(port, str) and re.fullmatch(r"[0-9]{1,5}", port):
            port = int(port)
        if self.values.get("request") != "attach" or not isinstance(port, int):
            return None
        return (host, port) if isinstance(host, str) and "$" not in host else None


def read(folder: Path) -> tuple[list[Configuration], str]:
    """Return a folder's configurations, and why they cannot be read ("" if they can)."""
    try:
        text = read_regular(folder / LAUNCH)
    except FileNotFoundError:
        return [], ""
    except (OSError, UnicodeDecodeError) as error:
        return [], str(error)
    try:
        found = parse_json(plain(text))
    except ValueError as error:
        return [], str(error)
    listed = found.get("configurations") if isinstance(found, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [Configuration(str(one.get("name")), one) for one in entries if _is_ours(one)], ""


def _is_ours(values: dict[str, Any]) -> bool:
    kind = values.get("type")
    return kind == "dap-mux" or (
        kind in ("debugpy", "python") and values.get("request") == "attach"
    )


def plain(text: str) -> str:
    """Convert JSON with comments to JSON, keeping line numbers."""
    return _PARTS.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
