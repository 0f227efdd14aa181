"""Appendix C: the tighter upper bound on the effective horizon, from the moments of returns.

bound            the bound itself
failure_bound    GORP's failure probability, bounded as a function of m
failure          its linear programs, backward in time
methods, tails   the four methods, and the inequalities that they use
"""
