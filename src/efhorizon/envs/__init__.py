"""Tables as Gymnasium environments: the fast place to try an algorithm, with the exact optimum at hand."""
