"""What the engine knows: the session, its ranks, clients, stops and ids. Nothing is sent here."""
