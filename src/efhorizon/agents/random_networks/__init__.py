"""Networks with random weights, and what their returns say about how hard an environment is."""
