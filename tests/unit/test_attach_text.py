"""What `dap-mux attach` says of many endpoints fits a line."""

from __future__ import annotations

from dap_mux.session.attach import shortened


def test_few_endpoints_are_all_named() -> None:
    assert shortened(["a:1", "b:2-5"]) == "a:1, b:2-5"


def test_of_many_the_first_and_the_last() -> None:
    endpoints = [f"127.0.0.1:{port}" for port in range(20000, 20512)]
    assert shortened(endpoints) == (
        "127.0.0.1:20000, 127.0.0.1:20001, 127.0.0.1:20002, … 508 more …, 127.0.0.1:20511"
    )
