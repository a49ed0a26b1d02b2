"""The rank's file differs or is elsewhere: finds the path mapping that helps.

A session has already compared files that have breakpoints, and proposes mappings; other files are
compared here in the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from dap_mux.frontends.doctor.observations import (
    FilePlace,
    Finding,
    Json,
    Observations,
    SessionSnapshot,
)
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.pathmap import BadMapping, fitting, parse
from dap_mux.pure.remote import MAX_COMPARED_BYTES, Found, found, look_at
from dap_mux.rank.injected import source_of
from dap_mux.system.user_files import open_regular

MAPPING: Final = "path-mapping"
MISSING: Final = "file-missing"
DIFFERS: Final = "file-differs"
SIGNS: Final = {MISSING: "file missing", DIFFERS: "file differs"}  # in a breakpoint's message
# Where debugpy looks for a client's file. Private interface: without it the path is unchanged.
SERVER_PATH_EXPRESSION: Final = (
    "(lambda m, p: m.map_file_to_server(p) if hasattr(m, 'map_file_to_server') else p)"
    "(__import__('pydevd_file_utils'), {!r})"
)
HOW_TO_ADD: Final = (
    'put this into the launch configuration, "pathMappings" (or in its place), and restart:'
)


async def examine_file_mapping(observed: Observations) -> list[Finding]:
    """Check breakpoints, then files that the user asked about, then launch.json."""
    findings = []
    for snapshot in observed.snapshots:
        findings += [found for one in snapshot.breakpoints if (found := _of_breakpoint(one))]
        known = {one["path"] for one in snapshot.breakpoints}
        for place in observed.places:
            if place.path not in known:
                findings += await _of_file(snapshot, place)
    return [*_united(findings), *_of_configurations(observed)]


def _of_breakpoint(one: Json) -> Finding | None:
    message = str(one["message"] or "")
    kind = next((kind for kind, sign in SIGNS.items() if sign in message), "")
    if not kind:
        return None
    where = f"{one['path']}:{one['line']}"
    if one["mappings"]:
        entries = [mapping["entry"] for mapping in one["mappings"]]
        return _mapping(where, f"{where}: {message}", entries)
    return _without(kind, where, f"{where}: {message}", "")


def _mapping(where: str, seen: str, entries: list[Json]) -> Finding:
    return Finding(
        MAPPING,
        f"the ranks have {where.rpartition(':')[0] or where} under another path",
        (seen,),
        (HOW_TO_ADD,),
        paste="\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries),
        where=where,
    )


def _without(kind: str, where: str, seen: str, ranks: str) -> Finding:
    missing = kind == MISSING
    return Finding(
        kind,
        f"{where} {'does not exist' if missing else 'is a different file'} where the ranks run",
        (seen,),
        (
            "copy it there, or open the copy that the ranks run"
            if missing
            else "make both files the same: their lines differ, so breakpoints stop elsewhere",
            (
                "if it is in another folder there, a mapping is missing: "
                'pathMappings [{"localRoot": ..., "remoteRoot": ...}]'
            ),
        ),
        ranks=ranks,
        where=where,
    )


async def _of_file(snapshot: SessionSnapshot, place: FilePlace) -> list[Finding]:
    wanted = _digest(place.path)
    findings = []
    for ranks, there in (await snapshot.ask(SERVER_PATH_EXPRESSION.format(place.path))).items():
        question = look_at(source_of("file_probe"), str(there), wanted)
        looked = await snapshot.ask(question, ranks)
        for some, said in looked.items():
            findings += _judged(place, some, str(there), wanted, _found(said))
    return findings


def _found(said: object) -> Found | None:
    try:
        return found(str(said))
    except PeerFault:
        return None


def _judged(
    place: FilePlace, ranks: str, there: str, wanted: str, looked: Found | None
) -> list[Finding]:
    if looked is None or (looked.digest and wanted in ("", looked.digest)):
        return []
    kind = DIFFERS if looked.digest else MISSING
    near = [one for one in looked.near if kind == MISSING or one[1] == wanted]
    fit = fitting(place.path, wanted, near, "")
    seen = f"rank {ranks}: {SIGNS[kind]}: {there}"
    if fit is None:
        return [_without(kind, str(place), seen, ranks)]
    entry = {"localRoot": fit[0][0], "remoteRoot": fit[0][1]}
    return [_mapping(str(place), seen, [entry])]


def _digest(path: str) -> str:
    """Return a digest comparable with the rank's."""
    try:
        size = Path(path).stat().st_size
        if size > MAX_COMPARED_BYTES:
            return f"size:{size}"
        with open_regular(Path(path)) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _united(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that need the same mapping."""
    distinct: dict[tuple[str, str], Finding] = {}
    for one in findings:
        key = one.cause, one.paste or one.where
        first = distinct.get(key)
        if first is None:
            distinct[key] = one
        else:
            distinct[key] = replace(first, evidence=(*first.evidence, *one.evidence))
    return list(distinct.values())


def _of_configurations(observed: Observations) -> list[Finding]:
    """Check for invalid mappings, and local roots that do not exist."""
    folder = str(Path.cwd())
    findings = []
    for one in observed.configurations:
        try:
            entries = parse(one.values.get("pathMappings"), folder).entries
        except BadMapping as error:
            seen = str(error)
        else:
            gone = [each.local for each in entries if not Path(each.local).exists()]
            if not gone:
                continue
            seen = f"localRoot {gone[0]} does not exist on this machine"
        findings.append(
            Finding(
                MAPPING,
                f"a path mapping of {one.where} is wrong",
                (seen,),
                ("localRoot is the project's folder here, remoteRoot its path where ranks run",),
                where=one.where,
            )
        )
    return findings
