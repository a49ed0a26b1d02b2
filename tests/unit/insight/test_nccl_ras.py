"""What `ncclras -f json` prints; the texts are laid out as NCCL's client_support.cc does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.why.nccl_ras import ras_lines, read_report

NUMBERS = {4711: 0, 4712: 1, 4713: 2, 4714: 3}


def rank(number: int, reduced: int, host: str = "10.0.0.1", error: int = 0) -> str:
    return f"""\
        {{
          "rank": {number},
          "host": "{host}",
          "pid": {4711 + number},
          "cuda_dev": {number},
          "nvml_dev": {number},
          "status": {{
            "init_state": 0,
            "async_error": {error},
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          }},
          "collective_counts": {{
            "Broadcast": 1,
            "AllReduce": {reduced}
          }}
        }}"""


def missing(number: int, *, dead: bool) -> str:
    return f"""\
        {{
          "rank": {number},
          "host": "unknown",
          "pid": {4711 + number},
          "cuda_dev": 3,
          "nvml_dev": 3,
          "status": {{
            "unresponsive": true,
            "considered_dead": {"true" if dead else "false"}
          }}
        }}"""


def report(ranks: list[str], gone: list[str]) -> str:
    return f"""\
{{
  "nccl_version": "2.28.7",
  "cuda_runtime_version": 13000,
  "cuda_driver_version": 13000,
  "timestamp": "2026-11-25 14:00:00",
  "communicators_count": 1,
  "communicators": [
    {{
      "hash": "0x8f1c",
      "secondary_hash": "0x1:0x2",
      "size": {len(ranks) + len(gone)},
      "ranks_count": {len(ranks)},
      "missing_ranks_count": {len(gone)},
      "ranks": [
{("," + chr(10)).join(ranks)}
      ],
      "missing_ranks": [
{("," + chr(10)).join(gone)}
      ]
    }}
  ],
  "ras": {{
    "collection_time_sec": 0.012,
    "timeouts_count": 0
  }}
}}
"""


HANGS = report([rank(at, 40 if at == 2 else 41) for at in range(4)], [])


def lines(text: str) -> list[str]:
    return ras_lines(read_report(text.encode()), NUMBERS)


def test_the_rank_that_is_behind() -> None:
    assert lines(HANGS) == ["NCCL: rank 2 of a communicator of 4: 40 AllReduce launched, others 41"]


def test_ranks_that_are_missing_or_have_failed() -> None:
    said = report(
        [rank(0, 41), rank(1, 41, error=6)], [missing(2, dead=False), missing(3, dead=True)]
    )
    assert lines(said) == [
        "NCCL: rank 3 of a communicator of 4: dead",
        "NCCL: rank 2 of a communicator of 4: without an answer",
        "NCCL: rank 1 of a communicator of 4: an error, or aborted",
    ]


def test_a_job_that_gets_on_says_nothing() -> None:
    assert lines(report([rank(at, 41, error=7) for at in range(4)], [])) == []


def test_a_process_of_another_machine_with_the_same_number_is_no_rank_of_ours() -> None:
    far = rank(1, 40, host="10.0.0.2").replace("4712", "4711")
    (told,) = lines(report([rank(0, 41), far], []))
    assert told.startswith("NCCL: member 1 (process 4711 on 10.0.0.2) of a communicator of 2: 40 ")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "NCCL version 2.28.9 compiled with CUDA 13.0\nJob summary\n===\n" + text,
        lambda text: text.replace("},\n        {", "}\n        {"),
        lambda text: text.replace('"ranks_count": 4,', '"ranks_count": 4'),
        lambda text: text.replace('"AllReduce": 41\n', '"AllReduce": 41,\n'),
        lambda text: text.replace("\n      ],\n", ",\n      ],\n", 1),
        lambda text: text + "\n#0-0 (000000) MISMATCH\n",
    ],
    ids=["banner", "no comma", "no comma in an object", "one too many", "in a list", "tail"],
)
def test_broken_json_is_mended(spoil: Callable[[str], str]) -> None:
    assert spoil(HANGS) != HANGS
    assert lines(spoil(HANGS)) == lines(HANGS)


@pytest.mark.parametrize(
    "said", ["", "Connection refused", "{}", '{"communicators": 3}', HANGS[:600], "[" * 99999]
)
def test_what_is_no_report(said: str) -> None:
    with pytest.raises(PeerFault, match="malformed output of ncclras"):
        read_report(said.encode())


@given(st.binary(max_size=200))
def test_anything_is_a_report_or_malformed(said: bytes) -> None:
    with suppress(PeerFault):
        ras_lines(read_report(b'{"communicators": [' + said + b"]}"), {})
