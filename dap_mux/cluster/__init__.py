"""Finding and starting ranks.

- `records`   one rank and where it listens: what everything here produces.
- `endpoints` the ranks that a user named: `host:5678-5681`, `@ranks.json`.
- `local`     N processes of this machine, started here.
- `launcher`  a launcher started here, whose Python programs become ranks.
- `slurm`     the tasks of a SLURM job; `slurm_commands` asks SLURM.
- `ssh`       ranks on a host's loopback.
- `pid`       running processes; `processes` looks at them, `injection` brings debugpy in.

One module for each engine; whatever it talks to, it ends in a list of `RankRecord`.
"""
