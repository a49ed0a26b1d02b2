"""What the job does: `why`, `stacks`, its time-outs, who waits for whom."""
