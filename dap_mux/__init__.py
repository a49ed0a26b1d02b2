"""dap-mux: one debug session for a distributed Python job, every rank a thread."""

__version__ = "0.1.0"
