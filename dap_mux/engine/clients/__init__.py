"""Clients as they attach, introduce themselves and leave."""
