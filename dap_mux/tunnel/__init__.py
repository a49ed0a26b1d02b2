"""Ways to ranks that cannot be reached as they are: children that forward ports, kept alive.

- `children`      other people's programs (kubectl, ssh, squeue), started so that none outlives us.
- `supervised`    a child that keeps a way open, started again whenever it ends.
- `port_forward`  `kubectl port-forward` and `oc port-forward` of one pod.
- `ssh`           `ssh -L` to one host.
"""
