"""Looks into a running job: `why`, `stacks`, its time-outs, and which rank waits for which."""
