"""`python -m dap_mux` is `dap-mux`."""

from __future__ import annotations

import sys

from dap_mux.frontends.cli import main

sys.exit(main())
