"""Where values go wrong first: ranks that are about to send what is not finite."""
