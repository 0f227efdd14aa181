"""Where stochastic tables come from: environments with `P`, OpenSpiel games, tables with a random start."""
