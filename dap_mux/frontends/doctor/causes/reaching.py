"""Why a rank cannot be reached: what is at its port, or at this end of a tunnel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dap_mux.frontends.doctor.machine import named
from dap_mux.frontends.doctor.observations import TAKEN, Observations, Subject
from dap_mux.pure.rank_sets import fold
from dap_mux.pure.rank_sets.world import fold_numbers

# Text that several causes share.

MAX_EVIDENCE: Final = 6  # lines; a job of a thousand ranks fails in one way


class Explanation(NamedTuple):
    """The wording of a finding about the ranks that share a cause."""

    summary: str
    evidence: Iterable[str]
    fix: tuple[str, ...]


def lines(evidence: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicates and limit the number of lines."""
    distinct = list(dict.fromkeys(evidence))
    more = len(distinct) - MAX_EVIDENCE
    return tuple(distinct[:MAX_EVIDENCE]) + ((f"and {more} more like these",) if more > 0 else ())


def ranks_of(subjects: Sequence[Subject]) -> str:
    """Return the folded set of ranks that a finding is about; "" for none."""
    found = [each.rank for each in subjects if each.rank]
    return fold(found, subjects[0].default_group) if found else ""


def endpoints_of(subjects: Sequence[Subject]) -> str:
    """Return `host:5678-5681`, with consecutive ports folded."""
    by_host: dict[str, set[int]] = {}
    for each in subjects:
        by_host.setdefault(each.endpoint.rpartition(":")[0], set()).add(each.port)
    return ", ".join(
        f"{host}:{folded}"
        for host, ports in by_host.items()
        for folded in fold_numbers(ports).split(",")
    )


# Another debugger is attached to the rank: debugpy accepts one client.


def already_attached_applies(subject: Subject, _: Observations) -> bool:
    """Whether debugpy reports it, or another client's connection exists."""
    if subject.who == "debugpy":
        return bool(subject.clients) and (TAKEN in subject.reason or not subject.session)
    return subject.outcome == "taken" or TAKEN in subject.reason


def already_attached(subjects: Sequence[Subject], _: Observations) -> Explanation:
    """Name the other client, if it is visible."""
    return Explanation(
        f"another debugger is attached at {endpoints_of(subjects)}",
        map(_already_attached_evidence, subjects),
        (
            (
                "end that debug session (in VS Code: Disconnect), or join it: several editors can "
                "attach to one dap-mux session, `dap-mux sessions` shows where"
            ),
            "if its connection has just broken, debugpy notices within 20 s; dap-mux keeps trying",
        ),
    )


def _already_attached_evidence(subject: Subject) -> str:
    if subject.clients:
        return f"connected to {subject.endpoint}: {named(subject.clients)}"
    said = subject.talk.words if subject.talk else subject.reason
    return f"{subject.endpoint} says: {said}"


# debugpy's adapter, the process with a rank's port, hangs or has ended; the rank still runs.

UNRESPONSIVE = ("wedged", "refuses")  # accepts connections, but no debugger
NO_REPLY = "no answer"  # in a session's reason


def wedged_applies(subject: Subject, _: Observations) -> bool:
    """Whether the adapter hangs or does not respond, or the rank runs without its port."""
    silent = subject.outcome in UNRESPONSIVE or NO_REPLY in subject.reason
    return silent or bool(_signs(subject))


def wedged(subjects: Sequence[Subject], _: Observations) -> Explanation:
    """Only restarting the rank helps."""
    return Explanation(
        f"debugpy's adapter at {endpoints_of(subjects)} is wedged: the rank runs, "
        "but no debugger can attach to it any more",
        (line for each in subjects for line in _wedged_evidence(each)),
        (
            (
                "restart the rank; until then it cannot be reached (a process started without "
                "debugpy can be attached to with `dap-mux attach pid:NUMBER`)"
            ),
            (
                "keep port scanners, health checks and `nc` away from debugpy's ports: a "
                "connection that is opened and closed has this effect"
            ),
        ),
    )


def _wedged_evidence(subject: Subject) -> list[str]:
    signs = _signs(subject)
    if subject.talk is not None and subject.outcome in UNRESPONSIVE:
        signs.append(f"{subject.endpoint} accepts connections: {subject.talk.words}")
    if NO_REPLY in subject.reason:
        signs.append(f"the session reports for rank {subject.ranks}: {subject.reason}")
    return signs


def _signs(subject: Subject) -> list[str]:
    found = []
    if subject.who == "nobody" and subject.rank_process is not None:
        found.append(
            f"{subject.rank_process} has debugpy loaded and runs, but nothing listens on "
            f"{subject.endpoint}: its adapter has ended"
        )
    if subject.who != "debugpy" or subject.holder is None or subject.listener is None:
        return found
    if TAKEN in subject.reason and not subject.clients:
        found.append(
            f"{subject.endpoint} reports {TAKEN!r}, but no other client is connected to it"
        )
    if subject.holder.is_halted:
        state = subject.holder.state
        found.append(f"{subject.holder} holds {subject.endpoint} and is suspended (state {state})")
    if subject.listener.queue:
        found.append(
            f"{subject.listener.queue} connections to {subject.endpoint} have not been accepted"
        )
    if subject.left:
        found.append(
            f"{subject.left} connections to {subject.endpoint} have been closed, and its "
            f"adapter ({subject.holder}) has not noticed"
        )
    return found


# Only some ports of a range are forwarded.


def port_range_applies(subject: Subject, observed: Observations) -> bool:
    """Whether nothing listens there while other ports of the range are forwarded."""
    return subject.who == "nobody" and bool(_forwarded(subject, observed))


def port_range(subjects: Sequence[Subject], observed: Observations) -> Explanation:
    """List the ports to forward as well."""
    there = _forwarded(subjects[0], observed)
    missing = " ".join(f"{each.port}:{each.port}" for each in subjects)
    holders = dict.fromkeys(str(each.holder) for each in there if each.holder)
    evidence = [f"{endpoints_of(there)}: forwarded by {', '.join(holders)}"]
    evidence += [f"nothing listens on {each.endpoint}" for each in subjects]
    return Explanation(
        f"only some ports of {subjects[0].named} are forwarded: {endpoints_of(subjects)} is not",
        evidence,
        (
            (
                f"forward them too: `kubectl port-forward POD {missing}` accepts several ports, "
                "`ssh -L` is given once for each"
            ),
            "or forward one port for all: `dap-mux attach` inside the cluster, and its port 5677",
        ),
    )


def _forwarded(subject: Subject, observed: Observations) -> list[Subject]:
    return [
        each
        for each in observed.subjects
        if each.named == subject.named and each.host == subject.host and each.who == "forwarder"
    ]


# The tunnel is down, or leads to a port where nothing listens.

# In a session's reason.
IS_DOWN = re.compile(r"^the rank closed the connection|^the tunnel .* is down|^(kubectl|oc|ssh) ")


def tunnel_down_applies(subject: Subject, _: Observations) -> bool:
    """Whether the rank was lost, or connections are accepted and closed at once."""
    lost = subject.state == "lost" and subject.who in ("nobody", "unknown", "forwarder")
    return lost or bool(IS_DOWN.search(subject.reason)) or subject.outcome == "hung up"


def tunnel_down(subjects: Sequence[Subject], _: Observations) -> Explanation:
    """Point at both ends of the tunnel."""
    return Explanation(
        f"the tunnel to {endpoints_of(subjects)} is down, or nothing listens at its other end",
        map(_tunnel_down_evidence, subjects),
        (
            (
                "start the forward again and look at what it prints: `kubectl port-forward POD "
                "5678:5678` (or `oc`, or `ssh -N -L 5678:127.0.0.1:5678 HOST`); a session with "
                "endpoints such as k8s:... or ssh:... does so by itself"
            ),
            "if the forward works, the rank behind it does not listen on that port: see its log",
        ),
    )


def _tunnel_down_evidence(subject: Subject) -> str:
    if subject.outcome == "hung up":
        holder = f" by {subject.holder}" if subject.holder else ""
        return f"a connection to {subject.endpoint} is accepted{holder}, and closed at once"
    return f"the session reports for rank {subject.ranks} ({subject.endpoint}): {subject.reason}"


# A wrong port: another program listens there, or this folder's ranks listen elsewhere.

MALFORMED = "sent malformed data"  # in a session's reason


def wrong_port_applies(subject: Subject, observed: Observations) -> bool:
    """Whether another program listens, or nothing while debugpys of this folder wait elsewhere."""
    other = subject.who in ("stranger", "dap-mux")
    misses = subject.who == "nobody" and bool(observed.elsewhere) and not subject.rank_process
    return other or misses or MALFORMED in subject.reason


def wrong_port(subjects: Sequence[Subject], observed: Observations) -> Explanation:
    """Name the ports of the ranks, if they can be found."""
    there = sorted(observed.elsewhere)
    found = ", ".join(f"127.0.0.1:{port}" for port in there)
    fix = f"use {found} instead" if there else "find out where the ranks listen: each one prints it"
    return Explanation(
        f"wrong port: no rank listens on {endpoints_of(subjects)}",
        [*map(_wrong_port_evidence, subjects), *_elsewhere(observed)],
        (f"{fix}; rank N listens on base port + N (5678 by default)",),
    )


def _wrong_port_evidence(subject: Subject) -> str:
    if subject.who == "dap-mux":
        return f"a dap-mux session listens on {subject.endpoint}: for editors, not a rank"
    if subject.who == "nobody":
        return f"nothing listens on {subject.endpoint} ({subject.named})"
    who = str(subject.holder) if subject.holder else "another program"
    said = subject.talk.words if subject.talk else subject.reason
    told = f": {said}" if said else ""
    return (
        f"{who} listens on {subject.endpoint} and does not speak the debug adapter protocol{told}"
    )


def _elsewhere(observed: Observations) -> list[str]:
    return [
        f"a debugpy started in this folder waits on port {port} ({holder})"
        for port, holder in sorted(observed.elsewhere.items())
    ]


# Connection refused: nothing listens where a rank should.


def refused_applies(subject: Subject, _: Observations) -> bool:
    """Whether nothing listens, or nothing responds at all."""
    return (
        subject.who == "nobody"
        or subject.outcome == "unreachable"
        or "nothing listens" in subject.reason
    )


def refused(subjects: Sequence[Subject], _: Observations) -> Explanation:
    """Say what to start, or which address to use."""
    where = endpoints_of(subjects)
    return Explanation(
        f"connection refused: nothing listens on {where}",
        map(_refused_evidence, subjects),
        (
            (
                "start the job under the debugger: `dap-mux run -n 4 SCRIPT`, or, in each rank, "
                "`python -m dap_mux.rank SCRIPT` (it prints where it listens)"
            ),
            (
                "if it runs elsewhere or on another port, use that address instead of "
                f"{where}; a job that has just been started may need a moment"
            ),
        ),
    )


def _refused_evidence(subject: Subject) -> str:
    if subject.reason:
        return f"the session reports for rank {subject.ranks}: {subject.reason}"
    if subject.talk is not None:
        why = subject.talk.words or "connection refused"
        return f"{subject.endpoint} ({subject.named}): {why}"
    return f"no process on this machine listens on {subject.endpoint} ({subject.named})"
