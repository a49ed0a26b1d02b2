"""A session in a file: written by `dap-mux record` and `save`, shown by `dap-mux open`."""

from __future__ import annotations
