"""Code for the job's own Python, for engines that start the job's ranks and know them.

The Python of a Ray, Dask or Monarch job has that engine, and need not have dap-mux. So a session
starts `PYTHON dap_mux/rank/frameworks ENGINE OPTIONS` with it: the module `ENGINE_cluster` reports
the ranks, line by line (`lines`). Python 3.10 or later, the standard library and that engine;
of dap-mux only `rank`.
"""
