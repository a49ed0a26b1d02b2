"""Messages without end to one engine: `make fuzz`, `make COUNT=1000000 fuzz`."""
