"""How long a report takes: 155 made-up MDPs with full learning curves (500 points, 5 seeds, 2 settings, 2 algorithms).

python benchmarks/report.py [--mdps 155] [--points 500] [--seeds 5]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from synthetic_study import Shape, write_study  # type: ignore[import-not-found]

from efhorizon.render.html import write_report

SECONDS, FRONT_PAGE_BYTES = 60, 3_000_000  # what a report may take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mdps", type=int, default=155)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shape = Shape(num_mdps=options.mdps, num_seeds=options.seeds, num_points=options.points)
        study = write_study(Path(folder) / "study", shape)
        rows = list((study / "rows").iterdir())
        size = sum(row.stat().st_size for row in rows)
        print(f"study: {options.mdps} MDPs, {len(rows):,} rows, {size / 1e6:.0f} MB")
        started, processor = time.perf_counter(), time.process_time()
        report = write_report(study, Path(folder) / "report")
        seconds, of_processor = time.perf_counter() - started, time.process_time() - processor
        front = report.index.stat().st_size
        print(f"report: {seconds:.1f} s (processor {of_processor:.1f} s; allowed {SECONDS} s)")
        print(f"        {report.num_files} files, {report.num_bytes / 1e6:.1f} MB")
        print(f"        front page {front / 1e6:.2f} MB (allowed {FRONT_PAGE_BYTES / 1e6:.0f} MB)")


if __name__ == "__main__":
    main()
