"""Policies to start from: networks, recordings, cloning, pretraining, and what a policy is worth on a table."""
