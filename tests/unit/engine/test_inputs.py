"""Each input of the engine has its handler."""

from __future__ import annotations

from typing import get_args

from dap_mux.engine import Engine, inputs
from dap_mux.session.injected_sources import injected_sources


def test_each_input_has_its_handler() -> None:
    assert Engine(injected_sources())._take.keys() == set(get_args(inputs.Input))
