"""Other people's measures of hardness, one per file: what Table 2 compares the effective horizon with."""
