"""Fixes that write a missing path mapping into launch.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from tree_sitter import Node

from dap_mux.lsp.jsonc import Edit, appended, items, members, read, replaced, said
from dap_mux.lsp.launch_json import ours

FOLDER: Final = "${workspaceFolder}"
NEW_NAME: Final = "Remote Attach to Cluster"
_DIGITS: Final = re.compile("[0-9]{1,5}")


@dataclass(frozen=True)
class Fix:
    """Edits of one configuration. `likely`: it is the one of the running session."""

    configuration: str
    edits: tuple[Edit, ...]
    likely: bool


def fixes(
    text: str,
    entry: Mapping[str, Any],
    *,
    instead: bool,
    folder: str,
    port: int,
    configuration_name: str = "",
) -> list[Fix]:
    """Return the fix that adds an entry to the session's configuration.

    That is the one with this name, or else with the session's port. Where no configuration has
    either there is a fix for each, and without any one that adds a configuration. A configuration
    that already has the entry is skipped. `instead`: the entry replaces the one with the same
    local root.
    """
    root, entry = read(text), portable(entry, folder)
    mine = ours(root)
    named = [one for one in mine if configuration_name and _name(one) == configuration_name]
    own = named or [one for one in mine if _port(one) == port]
    lacking = [one for one in own or mine if not _has(one, entry, folder)]
    found = [
        Fix(_name(one) or "?", edits, likely=bool(own))
        for one in lacking
        if (edits := _written(one, entry, instead=instead, folder=folder))
    ]
    configurations = members(root).get("configurations")
    if (
        not found
        and lacking == mine
        and configurations is not None
        and configurations.type == "array"
    ):
        whole = json.dumps(configuration(entry, port), ensure_ascii=False)
        return [Fix(NEW_NAME, tuple(appended(configurations, whole)), likely=True)]
    return found


def new_file(entry: Mapping[str, Any], *, folder: str, port: int) -> str:
    """Return a whole launch.json."""
    whole = {"version": "0.2.0", "configurations": [configuration(portable(entry, folder), port)]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def configuration(entry: Mapping[str, Any], port: int) -> dict[str, Any]:
    """Return a configuration for a session on this machine."""
    return {
        "name": NEW_NAME,
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": "localhost", "port": port},
        "pathMappings": [dict(entry)],
        "justMyCode": False,
    }


def portable(entry: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return an entry whose local root is relative to the workspace folder, if it is inside."""
    local = PurePath(entry["localRoot"])
    if folder and local.is_relative_to(folder):
        return {**entry, "localRoot": str(PurePath(FOLDER) / local.relative_to(folder))}
    return dict(entry)


def _has(one: Node, entry: Mapping[str, Any], folder: str) -> bool:
    for known in items(members(one).get("pathMappings")):
        try:
            value = json.loads(known.text or b"")
        except ValueError:  # for example, with a comment inside
            continue
        rooted = isinstance(value, dict) and isinstance(value.get("localRoot"), str)
        if rooted and portable(value, folder) == entry:
            return True
    return False


def _written(
    one: Node, entry: Mapping[str, Any], *, instead: bool, folder: str
) -> tuple[Edit, ...]:
    mappings = members(one).get("pathMappings")
    text = json.dumps(entry, ensure_ascii=False)
    if mappings is None:
        return tuple(appended(one, f'"pathMappings": [{text}]'))
    if mappings.type != "array":
        return ()
    for known in map(members, items(mappings)):
        if instead and _is_same(known, entry, folder) and "remoteRoot" in known:
            return (
                replaced(known["remoteRoot"], json.dumps(entry["remoteRoot"], ensure_ascii=False)),
            )
    return tuple(appended(mappings, text))


def _is_same(known: Mapping[str, Node], entry: Mapping[str, Any], folder: str) -> bool:
    roots = (said(known.get("localRoot")), str(entry["localRoot"]))
    here = [PurePath(folder, root.replace(FOLDER, folder)) for root in roots]
    return here[0] == here[1] and not {"ranks", "hosts"} & known.keys()


def _name(one: Node) -> str:
    return said(members(one).get("name"))


def _port(one: Node) -> int:
    """Return the port of a configuration, a number or a text; 0 without one."""
    connect = members(members(one).get("connect"))
    node = connect.get("port") or members(one).get("port")
    text = said(node) or (node.text.decode(errors="replace") if node and node.text else "")
    return int(text) if _DIGITS.fullmatch(text) else 0
