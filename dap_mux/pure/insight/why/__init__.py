"""Says why a job does not move on: `evidence` of its ranks, and one module for each verdict."""
