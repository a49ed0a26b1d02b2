"""`report.dapmux`: a zip file with what was seen at the last stops of a job.

All members are JSON of the Structs below, but for the sources, which are texts:

    report.json         `Report`
    stops/0001.json     `Stop`, in the order in which they were
    output.json         a list of `Printed`
    sources/0001.txt    a source file; `Report.sources` says of which path

A report comes from anybody: it is read with bounds, never unpacked to disk, and no name in it is
used as a path of this machine.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from dap_mux.pure.errors import UsageError

VERSION: Final = 1
MAX_STOPS: Final = 20
"""The last ones are kept."""
MAX_FILE: Final = 64 * 2**20
MAX_MEMBER: Final = 64 * 2**20
"""Bytes of a member when unpacked: a zip bomb has more."""
MAX_UNPACKED: Final = 512 * 2**20
MAX_MEMBERS: Final = 2000
HEADER: Final = "report.json"
OUTPUT: Final = "output.json"

Body = dict[str, Any]
Some = TypeVar("Some")


class Variable(msgspec.Struct, frozen=True, omit_defaults=True):
    """A variable as DAP shows it; `children` as deep as was recorded."""

    name: str
    value: str
    type: str = ""
    children: tuple[Variable, ...] = ()


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frame; `path`: as the rank's session shows it, "" where there is no file."""

    name: str
    path: str
    line: int
    locals: tuple[Variable, ...] = ()
    library: bool = False
    """Whether it is of an installed package."""


class Thread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread of a rank, its frames innermost first."""

    name: str
    frames: tuple[Frame, ...] = ()


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """What DAP's `exceptionInfo` answers."""

    type: str
    text: str
    traceback: str = ""


class At(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where some ranks were, all equal; `ranks`: their rank set, as `0-3,7`."""

    ranks: str
    state: str
    """Of the row of `list`: `stopped`, `running`, `ended` and so on."""
    reason: str = ""
    """Why they stopped, as in DAP's `stopped`; `exit code 1` of a rank that has ended."""
    text: str = ""
    threads: tuple[Thread, ...] = ()
    """The stopped thread first. Of running ranks those of `stacks`, without variables."""
    exception: Failure | None = None
    values: dict[str, str] = {}
    """Of each expression that was asked for: its repr in these ranks."""


class Stop(msgspec.Struct, frozen=True, omit_defaults=True):
    """A moment at which ranks stopped, or a job that hung was looked at."""

    after_s: float
    """Seconds since the job began."""
    title: str
    """In a few words: `0-2 stopped at train.py:31 (breakpoint)`."""
    at: tuple[At, ...]
    compared: dict[str, Body] = {}
    """The response of `compare` for each expression."""
    stacks: Body = {}
    """The response of `stacks`."""
    why: Body = {}
    """The response of `why`, where it was asked."""


class Printed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Output of ranks; `ranks` is "" where it is of the launcher."""

    text: str
    category: str = "stdout"
    ranks: str = ""


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The header."""

    version: int
    made_by: str
    """`dap-mux 0.1.0`."""
    made: str
    """When, in UTC: `2026-11-29T06:45:02Z`."""
    command: tuple[str, ...]
    """The launcher's line, without its secrets; () of a session that was saved."""
    ranks: tuple[int, ...]
    end: str
    """In a sentence: how the job ended, or that it runs."""
    job_exit: int | None = None
    """The job's own exit code; None where it was ended, or still runs."""
    verdict_exit: int | None = None
    """The exit code of the verdict on a job that hung, as docs/why.md has them."""
    why: Body = {}
    """The last verdict: the response of `why`."""
    end_block: str = ""
    """What `dap-mux run` prints of a job that failed."""
    stops_before: int = 0
    """How many stops there were before the first that was kept."""
    states: dict[str, str] = {}
    """The rank set by state, as the job ended or was saved: `exited, exit code 1` and so on."""
    sources: dict[str, str] = {}
    """The member that has the text, by the path that frames have."""


@dataclass(frozen=True)
class Contents:
    """A report that was read."""

    report: Report
    stops: tuple[Stop, ...]
    output: tuple[Printed, ...]
    texts: Mapping[str, str]
    """The sources, by the path that frames have."""


def packed(
    report: Report, stops: Sequence[Stop], output: Sequence[Printed], texts: Mapping[str, str]
) -> bytes:
    """Return the bytes of a report; `report.sources` follows from `texts`."""
    members = {path: f"sources/{number:04}.txt" for number, path in enumerate(texts, 1)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        header = msgspec.structs.replace(report, sources=members)
        archive.writestr(HEADER, msgspec.json.encode(header))
        for number, stop in enumerate(stops, 1):
            archive.writestr(f"stops/{number:04}.json", msgspec.json.encode(stop))
        archive.writestr(OUTPUT, msgspec.json.encode(output))
        for path, member in members.items():
            archive.writestr(member, texts[path].encode("utf-8", "replace"))
    return file.getvalue()


def read(data: bytes, name: str) -> Contents:
    """Return what a file holds; at most `MAX_FILE` + 1 bytes of it need be read.

    Raises UsageError, which says what is wrong with the file of this name.
    """
    if len(data) > MAX_FILE:
        raise UsageError(f"{name} has more than {MAX_FILE >> 20} MB, which no report has")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _contents(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UsageError(
            f"{name} is no whole report of dap-mux ({error}): copy it again, or record it anew"
        ) from None
    except (ValueError, KeyError, RuntimeError) as error:  # also a compression unknown here
        raise UsageError(f"{name} is no report of dap-mux: {error}") from None


def _contents(archive: zipfile.ZipFile) -> Contents:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise ValueError(f"it has {len(infos)} members, a report at most {MAX_MEMBERS}")
    if sum(info.file_size for info in infos) > MAX_UNPACKED:
        raise ValueError(f"unpacked it has more than {MAX_UNPACKED >> 20} MB")
    report = _decoded(archive, HEADER, Report)
    if report.version != VERSION:
        raise ValueError(f"its version is {report.version}, this dap-mux reads {VERSION}")
    names = sorted(info.filename for info in infos if info.filename.startswith("stops/"))
    return Contents(
        report,
        tuple(_decoded(archive, name, Stop) for name in names[-MAX_STOPS:]),
        _decoded(archive, OUTPUT, tuple[Printed, ...]),
        {
            path: _bytes(archive, member).decode("utf-8", "replace")
            for path, member in report.sources.items()
        },
    )


def _decoded(archive: zipfile.ZipFile, name: str, kind: type[Some]) -> Some:
    try:
        return msgspec.json.decode(_bytes(archive, name), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{name}: {error}") from None


def _bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member, but never more than it may have: its header may lie about its size."""
    with archive.open(name) as member:
        data = member.read(MAX_MEMBER + 1)
    if len(data) > MAX_MEMBER:
        raise ValueError(f"{name} has more than {MAX_MEMBER >> 20} MB")
    return data
