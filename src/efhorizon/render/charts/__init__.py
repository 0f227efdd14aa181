"""The charts: pure functions, data in and SVG out."""
