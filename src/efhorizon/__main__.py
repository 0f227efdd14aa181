# PYTHON_ARGCOMPLETE_OK
"""The entry point of `efhorizon` and of `python -m efhorizon`."""

from __future__ import annotations

import sys

from efhorizon.commands import main

if __name__ == "__main__":
    sys.exit(main())
