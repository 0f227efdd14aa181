"""How long `import efhorizon` and `efhorizon --help` take, beside `import numpy`, measured in turns in one run.

python benchmarks/import_time.py [--runs 15] [--python PATH]

Prints the median of each and its ratio to that of numpy. `--python` measures another environment, such as one with
only the wheel. Modules that nobody needs for either (numba, torch, pyarrow, scipy) are named if they are loaded.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAVY = ("numba", "llvmlite", "torch", "pyarrow", "scipy", "matplotlib", "pandas")
LIMIT = 0.5  # seconds, that both should stay below


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    command = str(Path(options.python).parent / "efhorizon")
    commands = {
        "import numpy": [options.python, "-c", "import numpy"],
        "import efhorizon": [options.python, "-c", "import efhorizon"],
        "efhorizon --help": [command, "--help"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:  # not the repository
        for _ in range(options.runs + 1):
            for name, arguments in commands.items():
                started = time.perf_counter()
                subprocess.run(arguments, check=True, cwd=folder, stdout=subprocess.DEVNULL)
                seconds[name].append(time.perf_counter() - started)
        loaded = f"import sys, efhorizon; print(*[name for name in {HEAVY} if name in sys.modules])"
        heavy = subprocess.run([options.python, "-c", loaded], cwd=folder, check=True, capture_output=True, text=True)
    medians = {name: statistics.median(each[1:]) for name, each in seconds.items()}  # the first run warms the disk
    for name, median in medians.items():
        ratio = median / medians["import numpy"]
        verdict = "" if name == "import numpy" else f"  {'under' if median < LIMIT else 'OVER'} {LIMIT} s"
        print(f"{name:18} {median:.3f} s  {ratio:.2f} x numpy{verdict}")
    print(f"heavy modules loaded by import efhorizon: {heavy.stdout.strip() or 'none'}")


if __name__ == "__main__":
    main()
