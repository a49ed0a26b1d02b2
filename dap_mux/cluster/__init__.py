"""Finding and starting ranks.

- `records`   one rank and its address: what every module here produces.
- `endpoints` endpoint arguments: `host:5678-5681`, `@ranks.json`, `k8s:job/train`.
- `local`     starts N processes on this machine.
- `launcher`  starts a launcher, whose Python programs become ranks.
- `slurm`     the tasks of a SLURM job.
- `kubernetes` pods, and jobs of Kubernetes and its training operators.
- `openpai`   the tasks of an OpenPAI job.
- `ssh`       ranks on a host's loopback.
- `pid`       running processes; `python_process` inspects them, `injection` brings debugpy in.
- `framework_source` the workers of Dask and Ray.

Each kind of source is one module, and whatever it talks to, it returns a list of `RankRecord`.
"""
