"""Reduces the answers of many ranks to what a person can read. Pure: the engine collects them."""
