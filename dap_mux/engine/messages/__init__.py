"""How a message is routed, answered, forwarded and bounded in time."""
