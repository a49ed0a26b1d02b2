"""Tunnels to ranks that cannot be reached directly: child processes that forward ports.

- `children`      runs programs (kubectl, ssh, squeue) so that none outlives us.
- `supervised`    a child that keeps a tunnel open, restarted whenever it ends.
- `port_forward`  `kubectl port-forward` and `oc port-forward` of one pod.
- `ssh`           `ssh -L` to one host.
"""
