"""What the verbs of the command line do: each module runs one, and prints for people or as JSON."""
