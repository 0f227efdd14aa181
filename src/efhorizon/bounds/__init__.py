"""Sample-complexity bounds: one bound per file, one public function of a `Problem` each."""
