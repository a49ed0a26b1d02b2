"""The engine's state: the session, its ranks, clients, stops and ids. Nothing is sent from here."""
