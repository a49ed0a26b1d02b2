"""Evaluating in one rank or in many, and folding their answers into one."""
