"""What becomes an expression in a rank, and what comes back."""
