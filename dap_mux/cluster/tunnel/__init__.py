"""Tunnels to ranks that cannot be reached directly: child processes that forward ports.

- `children`    runs programs (kubectl, ssh, squeue) so that none outlives us.
- `supervised`  a child that keeps a tunnel open, restarted whenever it ends.

The tunnels themselves are in `cluster.ssh` and `cluster.kubernetes.pod_forward`.
"""
