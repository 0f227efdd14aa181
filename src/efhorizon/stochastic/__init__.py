"""Stochastic MDPs: tables with several successors per pair, planning, bounds and SQIRL on them."""
