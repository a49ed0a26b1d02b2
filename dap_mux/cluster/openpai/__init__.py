"""Ranks in the tasks of an OpenPAI job, found by the job's REST API.

- `source`  the endpoint `openpai:URL/USER/JOB`, the description of a job, and its `Source`.
- `rest`    the requests: verified TLS, a token for one server only, bounded answers.
"""

from dap_mux.cluster.openpai.source import OpenPai

__all__ = ["OpenPai"]
