"""Sample-complexity bounds: one bound a file, one public function of a `Problem` each."""
