"""A diagnosis of an environment without a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from efhorizon.diagnose.diagnosing import DEFAULT_STEPS, MAX_K, diagnosed
from efhorizon.diagnose.diagnosis import Diagnosis
from efhorizon.diagnose.progress import progress_line
from efhorizon.diagnose.subject import subject_of
from efhorizon.diagnose.survey import Settings
from efhorizon.library.progress import ProgressLine


def diagnose(
    env: Any,
    *,
    horizon: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    wrappers: Sequence[str | Callable[..., Any]] = (),
    max_steps: int | None = None,
    max_minutes: float | None = None,
    seed: int = 0,
    progress: bool = False,
    **options: Any,
) -> Diagnosis:
    """How hard an environment is, by playing it: for those too large or too random for a table.

    `env` is what `ef.build` takes, and stochastic environments too. The budget is `max_steps` of the environment (a
    million, if nothing is given), or `max_minutes`. Options: `best_return`, `max_k`, `workers`, `fixed_start` (the seed
    of every reset), and `log`, a file in which progress is kept, so that the same call continues after an interruption.
    """
    subject = subject_of(
        env, horizon=horizon, arguments=arguments, wrappers=wrappers, fixed_start=options.pop("fixed_start", None)
    )
    log = options.pop("log", None)
    workers = options.pop("workers", 1)
    settings = Settings(
        horizon=subject.horizon,
        seed=seed,
        max_k=options.pop("max_k", MAX_K),
        max_steps=DEFAULT_STEPS if max_steps is None and max_minutes is None else max_steps,
        max_minutes=max_minutes,
        best_return=options.pop("best_return", None),
    )
    if options:
        raise TypeError(f"diagnose() got an unexpected option {next(iter(options))!r}")
    with ProgressLine(progress) as line:
        return diagnosed(
            subject,
            settings,
            workers=workers,
            log_path=None if log is None else Path(log),
            on_progress=lambda findings, doing: line(progress_line(subject.id, findings, doing)),
        )
