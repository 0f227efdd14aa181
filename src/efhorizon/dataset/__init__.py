"""Data sets: a study as a folder to put on the web, and MDPs loaded from there by name. See docs/dataset.md."""
