"""Which theory predicts practice? Pure functions from rows to the paper's tables and some more."""
