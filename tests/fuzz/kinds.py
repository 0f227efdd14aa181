"""The kinds of input: which files of the corpus, what is done to them, and every command that reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from .corpus import CHECKPOINT, EMPTY, HORIZON, LAVA, SHORT, UNFINISHED
from .csv_files import CSV
from .folder_changes import FOLDERS
from .json_files import JSON, LINES
from .mutations import Mutations
from .npy_files import NPY
from .npz_files import NPZ
from .parquet_files import PARQUET
from .png_files import PNG
from .search_files import SEARCH
from .store_files import STORE, STORE_CHUNKS

REQUESTS, ARGUMENTS = "requests", "arguments"  # kinds that are not files

NO_CHECKSUM = "the format has no checksum: another number in it is another file"
OLDER = "files of older versions have no checksum: another number in it is another file"
MISSING = "the same without one run, analysis or record is another study"
FORECAST = "a forecast is a guess: what it cannot read it does without"


@dataclass(frozen=True)
class Command:
    """A command line, seen from the folder `cwd` beside the folder `given` with the files."""

    name: str
    line: str
    writes: tuple[str, ...] = ()  # what it may write, as patterns of paths from the case's folder
    result: tuple[str, ...] = ()  # files that are part of its result
    may_differ: str = ""  # why its result may be another one after all
    computes: bool = False  # whether the time it takes depends on what is in the table
    talks: bool = False  # whether lines of progress are part of what it says
    on_flips: bool = True  # whether flipped bits are tried on it; others read no more of the file than those that are

    @property
    def arguments(self) -> list[str]:
        return self.line.split()


@dataclass(frozen=True)
class Kind:
    """A kind of file, or of other input."""

    name: str
    title: str
    scene: tuple[str, ...]  # what is copied from the corpus
    files: tuple[str, ...]  # patterns of the files that are damaged
    mutations: Mutations  # of the JSON files, where there are others
    commands: tuple[Command, ...]
    others: Mutations | None = None  # of the files that are not JSON
    may_differ: str = ""  # why a damaged file may give another result without a word; empty: it may not
    may_be_missing: bool = False  # whether the same without one of these files is another valid input
    is_older: bool = False  # whether checksums are taken out before anything else is done

    def mutations_of(self, file: Path) -> Mutations:
        return self.mutations if self.others is None or file.suffix == ".json" else self.others


def _table_commands(table: str, algorithm: str = "", more: str = "") -> tuple[Command, ...]:
    """The commands that read a table; `export` reads every byte, `show` only one screen."""
    picture, results = ("cwd/start.png",), ("cwd/results/**",)
    return (
        Command("show", f"show {table} --json", on_flips=False),
        Command("show (text, screen)", f"show {table} --image start.png", writes=picture, result=picture),
        Command("analyze", f"analyze {table} --max-k 1 --json", computes=True),
        Command("analyze (text)", f"analyze {table} --max-k 1", computes=True, on_flips=False),
        Command("gorp", f"gorp {table} --m 2 --runs 3 --json", on_flips=False),
        Command("verify", f"verify {table} --episodes 4 --json{more}", on_flips=False),
        Command("export", f"export {table} out.npz --json", writes=("cwd/out.npz",), result=("cwd/out.npz",)),
        Command(
            "train",
            f"train {table} {algorithm or '--algo gorp --settings k1'} --json",
            writes=results,
            result=("cwd/results/rows/*.json",),
            computes=True,
            on_flips=False,
        ),
    )


def _study_commands(study: str) -> tuple[Command, ...]:
    """The commands that read a study: a results folder, an export or a summary.csv."""
    return (
        Command("evaluate", f"evaluate {study} --resamples 5 --json"),
        Command("evaluate (text)", f"evaluate {study} --resamples 5", on_flips=False),
        Command(
            "evaluate --export",
            f"evaluate {study} --resamples 5 --export out --json",
            writes=("cwd/out/**",),
            result=("cwd/out/*",),
            on_flips=False,
        ),
        Command("report", f"report {study} --out site --json", writes=("cwd/site/**",), result=("cwd/site/**",)),
    )


_STUDY = "../given/study"
_POLICY = "--exploration-policy ../given/policy.npy"
_DQN = "--algo dqn --settings exploration0.1 --seeds 1 --steps 256"
_PPO = "--algo ppo --settings rollout128 --seeds 1 --steps 256"
_TRAIN_AGAIN = Command(
    "train (rows there)",
    f"train {LAVA} --algo gorp --tables {_STUDY}/tables --results {_STUDY} --json",
    writes=("given/study/claims/**", "given/study/rows/**"),
)
_STUDY_AGAIN = Command(
    "study (again)",
    f"study {LAVA} --out {_STUDY} --algos gorp --workers 1 --json",
    writes=("given/study/**",),
    talks=True,
    on_flips=False,
)
_FORECAST = Command(
    "study --forecast", f"study {LAVA} --out {_STUDY} --algos gorp --forecast --json", may_differ=FORECAST
)
_ROWS = Command(
    "study --rows",
    f"study {LAVA} --out taken --rows ../given/export --algos gorp --workers 1 --json",
    writes=("cwd/taken/**",),
    result=("cwd/taken/rows/*.json",),
    talks=True,
)
_BUILD = Command(
    "build",
    f"build {LAVA} --horizon {HORIZON} --out ../given/tables --workers 1 --episodes 3 --json",
    writes=("given/tables/**",),
    result=(f"given/tables/{SHORT}/zarr.json",),
)
_CONTINUE = Command(
    "build (continued)",
    f"build {EMPTY} --horizon {HORIZON} --out ../given/begun --workers 1 --episodes 3 --json",
    writes=("given/begun/**",),
    result=(f"given/begun/{EMPTY}-T{HORIZON}/zarr.json",),
)

_KINDS = (
    Kind(
        "store",
        "native store with screens and raw states",
        (f"tables/{SHORT}", "tables/searches"),
        (f"tables/{SHORT}/**/*",),
        STORE,
        (*_table_commands(f"../given/tables/{SHORT}", _PPO), replace(_BUILD, on_flips=False)),
        STORE_CHUNKS,
    ),
    Kind(
        "unfinished-store",
        "native store of an unfinished search",
        (f"tables/{UNFINISHED}",),
        (f"tables/{UNFINISHED}/**/*",),
        STORE,
        (
            Command("show", f"show ../given/tables/{UNFINISHED} --json"),
            Command("analyze", f"analyze ../given/tables/{UNFINISHED} --max-k 1 --json"),
            Command("verify", f"verify ../given/tables/{UNFINISHED} --episodes 4 --json"),
        ),
        STORE_CHUNKS,
    ),
    Kind(
        "npz",
        "exported .npz with screens and raw states",
        ("npz", "odd"),
        ("npz/table.npz",),
        NPZ,
        _table_commands("../given/npz/table.npz"),
    ),
    Kind(
        "published-npz",
        ".npz in the authors' layout, without a comment",
        (f"published/{LAVA}",),
        (f"published/{LAVA}/*.npz",),
        NPZ,
        _table_commands(f"../given/published/{LAVA}/consolidated.npz", more=f" --id {LAVA}"),
    ),
    Kind(
        "search",
        "search on disk: config.json, commit.json, nine files",
        ("tables/searches", "begun"),
        (f"tables/searches/{LAVA}*/*", f"begun/searches/{EMPTY}*/*"),
        JSON,
        (_BUILD, _CONTINUE),
        SEARCH,
    ),
    Kind(
        "forecast",
        "what a forecast reads of a search",
        ("study",),
        ("study/tables/searches/*/commit.json",),
        JSON,
        (_FORECAST,),
        may_differ=FORECAST,
    ),
    Kind(
        "row",
        "run of a study",
        ("study",),
        ("study/rows/*.json",),
        JSON,
        (*_study_commands(_STUDY), _TRAIN_AGAIN),
        may_be_missing=True,
    ),
    Kind(
        "analysis",
        "analysis of a study",
        ("study",),
        ("study/analyses/*.json",),
        JSON,
        (*_study_commands(_STUDY), _STUDY_AGAIN),
        may_be_missing=True,
    ),
    Kind("picture", "picture of a study", ("study",), ("study/pictures/*.png",), PNG, (_study_commands(_STUDY)[3],)),
    Kind(
        "results.json",
        "mark of a results folder",
        ("study",),
        ("study/results.json",),
        JSON,
        (_study_commands(_STUDY)[0], _TRAIN_AGAIN),
    ),
    Kind(
        "study.json",
        "what was planned",
        ("study",),
        ("study/study.json",),
        JSON,
        (_study_commands(_STUDY)[0], _study_commands(_STUDY)[3]),
    ),
    Kind(
        "study-folder",
        "a whole results folder",
        ("study",),
        ("study/**/*",),
        FOLDERS,
        (*_study_commands(_STUDY), _TRAIN_AGAIN, _STUDY_AGAIN),
        may_differ="a study from which files were taken, or to which some were added, is another study",
    ),
    Kind(
        "tables.csv",
        "list of tables that were built elsewhere",
        ("export",),
        ("export/tables.csv",),
        CSV,
        (*_study_commands("../given/export"), _ROWS),
    ),
    Kind(
        "mdps.parquet",
        "export: MDPs",
        ("export",),
        ("export/mdps.parquet",),
        PARQUET,
        (*_study_commands("../given/export"), _ROWS),
    ),
    Kind(
        "runs.parquet",
        "export: runs",
        ("export",),
        ("export/runs.parquet",),
        PARQUET,
        (*_study_commands("../given/export"), _ROWS),
    ),
    Kind(
        "summary.csv",
        "the authors' table of MDPs",
        ("export",),
        ("export/summary.csv",),
        CSV,
        _study_commands("../given/export/summary.csv"),
    ),
    Kind(
        "checksums.txt",
        "list of checksums beside an export",
        ("export",),
        ("export/checksums.txt",),
        LINES,
        (*_study_commands("../given/export"), _ROWS),
    ),
    Kind(
        "checkpoint",
        "checkpoint of gorp --live",
        ("saved",),
        ("saved/*.json",),
        JSON,
        (
            Command(
                "gorp --live",
                f"gorp {CHECKPOINT} --checkpoints ../given/saved --json",
                writes=("given/saved/**",),
            ),
        ),
    ),
    Kind(
        "policy",
        "exploration policy (.npy)",
        (f"tables/{SHORT}", "policy.npy"),
        ("policy.npy",),
        NPY,
        (
            Command(
                "analyze --exploration-policy",
                f"analyze ../given/tables/{SHORT} --max-k 1 --json {_POLICY}",
            ),
            Command(
                "gorp --exploration-policy",
                f"gorp ../given/tables/{SHORT} --m 2 --runs 3 --json {_POLICY}",
            ),
            Command(
                "train --exploration-policy",
                f"train ../given/tables/{SHORT} {_DQN} --json {_POLICY}",
                writes=("cwd/results/**",),
            ),
        ),
        may_differ=NO_CHECKSUM,
    ),
    Kind(
        "parameters",
        "initial parameters (.npz)",
        (f"tables/{SHORT}", "initial.npz"),
        ("initial.npz",),
        NPZ,
        (
            Command(
                "train --initial",
                f"train ../given/tables/{SHORT} {_PPO} --json --initial ../given/initial.npz",
                writes=("cwd/results/**",),
            ),
        ),
        may_differ="other parameters are another file; what is not theirs, such as the comment, does not count",
    ),
    Kind(
        "report.json",
        "mark of a report",
        ("study", "site"),
        ("site/report.json",),
        JSON,
        (
            Command("report (again)", f"report {_STUDY} --out ../given/site --json", writes=("given/site/**",)),
            Command("serve", "serve ../given/site --port 0"),
        ),
        may_differ="the mark says that a folder is a report, and nothing else that counts",
    ),
    Kind(REQUESTS, "requests over HTTP", ("site",), (), Mutations(), (Command("serve (requests)", ""),)),
    Kind(
        ARGUMENTS,
        "arguments of the command line",
        (f"tables/{SHORT}", "study", "site"),
        (),
        Mutations(),
        (Command("any", "list --json", writes=("cwd/**", "given/study/claims/**")),),
    ),
)
_ALSO_OLDER = (
    "store",
    "npz",
    "search",
    "row",
    "analysis",
    "checkpoint",
    "mdps.parquet",
    "runs.parquet",
    "tables.csv",
    "summary.csv",
)


def _older(kind: Kind) -> Kind:
    title = f"{kind.title}, of an older version"
    may_differ = "" if kind.name == "store" else OLDER  # stores have always had digests
    return replace(kind, name=f"older-{kind.name}", title=title, may_differ=may_differ, is_older=True)


KINDS: dict[str, Kind] = {
    each.name: each for kind in _KINDS for each in ((kind, _older(kind)) if kind.name in _ALSO_OLDER else (kind,))
}
