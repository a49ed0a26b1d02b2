"""Decides about the numbers and the pace of a job: what ranks sent, and when."""
