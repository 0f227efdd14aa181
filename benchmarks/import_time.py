"""How long `import efhorizon` and `efhorizon --help` take, beside `import numpy`, measured in turns in one run.

python benchmarks/import_time.py [--runs 15] [--python PATH]

Prints the median of each, by the clock and in processor time, with ratios to numpy. `--python` measures another
environment, such as one with only the wheel. Processor time hardly depends on what else the machine is doing. Modules
that neither needs (numba, torch, pyarrow, scipy) are named if they are loaded.
"""

from __future__ import annotations

import argparse
import resource
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
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}  # by the clock, of the processor
    with tempfile.TemporaryDirectory() as folder:  # not the repository
        for _ in range(options.runs + 1):
            for name, arguments in commands.items():
                started, used = time.perf_counter(), _processor_time()
                subprocess.run(arguments, check=True, cwd=folder, stdout=subprocess.DEVNULL)
                seconds[name].append((time.perf_counter() - started, _processor_time() - used))
        loaded = f"import sys, efhorizon; print(*[name for name in {HEAVY} if name in sys.modules])"
        heavy = subprocess.run([options.python, "-c", loaded], cwd=folder, check=True, capture_output=True, text=True)
    for number, title in enumerate(("by the clock", "processor time")):
        print(title)
        medians = {name: statistics.median(run[number] for run in each[1:]) for name, each in seconds.items()}
        for name, median in medians.items():  # without the first run, which warms the disk
            ratio = median / medians["import numpy"]
            verdict = "" if name == "import numpy" else f"  {'under' if median < LIMIT else 'OVER'} {LIMIT} s"
            print(f"  {name:18} {median:.3f} s  {ratio:.2f} x numpy{verdict}")
    print(f"heavy modules loaded by import efhorizon: {heavy.stdout.strip() or 'none'}")


def _processor_time() -> float:
    """Of all commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
