"""The modules that are mutated, and the tests that stand guard over each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """Some modules and their tests, all paths with wildcards: below src/efhorizon, and below tests."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]  # the nearest first

    def module_names(self, root: Path) -> list[str]:
        source = root / "src" / "efhorizon"
        found = {path.relative_to(source).as_posix() for each in self.modules for path in source.glob(each)}
        return sorted(name for name in found if not name.endswith("__init__.py"))

    def test_files(self, root: Path, module: str) -> list[str]:
        """In the order in which they are run: a test file that bears the module's name comes first."""
        tests = root / "tests"
        files = [path.relative_to(root).as_posix() for each in self.tests for path in sorted(tests.glob(each))]
        own = f"/test_{Path(module).stem.lstrip('_')}.py"
        return sorted(dict.fromkeys(files), key=lambda file: not file.endswith(own))


PARTS = (
    Part(
        "planning",
        ("planning/*.py",),
        ("planning/test_*.py", "gorp/test_success.py", "bounds/test_problem_bounds.py", "agents/test_gorp_runs.py"),
    ),
    Part("gorp", ("gorp/*.py",), ("gorp/test_*.py", "bounds/test_exact_horizon.py", "bounds/test_goal_sufficient.py")),
    Part(
        "bounds",
        ("bounds/*.py",),
        (
            "bounds/test_problem_bounds.py",
            "bounds/test_analysis.py",
            "bounds/test_unfinished.py",
            "bounds/test_goal_sufficient.py",
            "bounds/test_registry.py",
            "bounds/test_exact_horizon.py",
        ),
    ),
    Part(
        "appendix_c",
        ("bounds/appendix_c/*.py",),
        ("bounds/test_appendix_c.py", "bounds/test_exact_horizon.py", "bounds/test_analysis.py"),
    ),
    Part("consolidate", ("build/consolidate.py",), ("build/test_consolidate.py",)),
    Part(
        "io",
        ("io/br*.py", "io/[cflz]*.py", "io/shapes.py", "io/store.py"),
        ("io/test_*.py", "study/test_checksums.py"),
    ),
    Part(
        "evaluation",
        ("evaluation/metrics.py", "evaluation/runs.py"),
        ("evaluation/test_metrics.py", "evaluation/test_run_selection.py", "evaluation/test_study_source.py"),
    ),
)
