"""Arguments: numbers, sizes, times, names and paths as somebody may type them."""

from __future__ import annotations

from .cases import Case
from .corpus import EMPTY, LAVA, SHORT
from .json_files import HOSTILE_TEXTS

_TABLE, _STUDY = f"../given/tables/{SHORT}", "../given/study"
_NUMBERS = (
    *("0", "-1", "1.5", "1e400", "nan", "inf", "-inf", "", " ", "x", "0x10", "1_0", "1,0", "1e-9", "--", "٣"),
    *("½", "1e999999999"),
    *("9" * 400, "9" * 5000, "1" + "0" * 18, "2147483648", "18446744073709551616", "1e30", "5M5", "M", "-"),
    *("+1", "\x1b[31m1", "1 2"),
)
_SIZES = (
    *("infG", "nanM", "-1G", "0", "G", "1e400T", "9" * 400 + "G", "1.5.5M", "", "1PB", "1 G"),
    *("1e-30K", "0.1"),
)
_TIMES = ("nan", "inf", "-5", "0", "1h90", "h", "1e400", "9" * 400, "1h1h", "", "90s90m", "1e-400", "-1s", "\x1b1m")
_NAMES = (
    *(text for text in HOSTILE_TEXTS if "\x00" not in text and "\ud800" not in text and len(text) < 10_000),
    *("/dev/zero", "/dev/stdin", "/proc/self/mem", "/etc/passwd", "-", "--json", "-h", "a" * 300, "a" * 5_000),
    *("~", "*", "../given"),
    *("../given/pipe", "../given/circle", "../given/tables", "../given/study/results.json", "../given/empty"),
    *("../given/empty.npz",),
)
_IDS = (
    LAVA,
    EMPTY,
    "freeway_10_fs30x",
    "MiniGrid-Empty-5x5-v1",
    "CartPole-v1",
    "NoSuch-v0",
    "a:b",
    "os:system",
    "x/y-v0",
    *_NAMES,
)

# Each line with a place {} and what may stand there. Numbers that ask for much work and get it are no mistake, so those
# options that only multiply work (--episodes, --seeds, --workers, --resamples) are tried with few of them.
_LINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(
        (f"{verb} {{}}", _NAMES)
        for verb in ("show", "analyze", "gorp", "verify", "evaluate", "report", "serve", "list", "completion")
    ),
    ("{}", (*_NAMES, "shwo", "Show", "build build")),
    (f"analyze {_TABLE} --json --horizon {{}}", _NUMBERS),
    (f"analyze {_TABLE} --json --max-k {{}}", _NUMBERS),
    (f"analyze {_TABLE} --json --max-k 1 --gamma {{}}", (*_NUMBERS, "0.5", "1e-300", "0.9999999999999999")),
    (f"analyze {_TABLE} --json --max-k 1 --reward-bounds 0 {{}}", (*_NUMBERS, "1e308", "-1e308")),
    (f"analyze {_TABLE} --max-k 1 --exploration-policy {{}}", _NAMES),
    (f"analyze {_TABLE} --max-k 1 --tables {{}}", _NAMES),
    (f"gorp {_TABLE} --json --runs 3 --m {{}}", _NUMBERS),
    (f"gorp {_TABLE} --json --m 2 --runs 3 --k {{}}", _NUMBERS),
    (f"gorp {_TABLE} --json --m 2 --runs 3 --horizon {{}}", _NUMBERS),
    (f"gorp {_TABLE} --json --m 2 --runs 3 --seed {{}}", _NUMBERS),
    (f"gorp {_TABLE} --json --runs 3 --budget {{}}", _NUMBERS),
    (f"gorp {EMPTY} --live --m 1 --horizon 4 --max-steps {{}}", _NUMBERS),
    (f"gorp {EMPTY} --live --m 1 --horizon {{}} --max-steps 50", _NUMBERS),
    (f"gorp {EMPTY} --live --horizon 4 --k {{}} --m 1 --max-steps 50", _NUMBERS),
    ("gorp {} --live --m 1 --horizon 4 --max-steps 50", _IDS),
    (f"verify {_TABLE} --episodes 3 --seed {{}}", _NUMBERS),
    (f"verify {_TABLE} --episodes 3 --id {{}}", _IDS),
    (f"export {_TABLE} {{}}", (*_NAMES, "x.npz", "/nowhere/x.npz", "../given/pipe", "../given/tables.npz", ".npz")),
    (f"train {_TABLE} --algo gorp --settings {{}} --json", (*_NAMES, "k1,k1", "k9", "k1,", ",", "rollout128")),
    (
        f"train {_TABLE} --algo ppo --settings rollout128 --seeds 1 --steps {{}}",
        ("0", "-1", "x", "1.5", "nan", "", "1e-3"),
    ),
    (f"train {_TABLE} --algo {{}}", ("", "x", "PPO", "gorp ppo", "\x1b[31m", "[/bold]")),
    (f"train {_TABLE} --algo ppo --settings rollout128 --steps 128 --seeds 1 --initial {{}}", _NAMES),
    ("build {} --out new --workers 1 --max-states 5", _IDS),
    ("build --env {} --out new --workers 1 --max-states 5 --horizon 3", _IDS),
    (f"build {LAVA} --out new --workers 1 --max-states {{}}", ("0", "-1", "x", "nan", "1.5", "", "1", "9" * 400)),
    (f"build {LAVA} --out new --workers 1 --max-states 5 --max-memory {{}}", _SIZES),
    (f"build {LAVA} --out new --workers 1 --max-states 5 --max-minutes {{}}", _TIMES),
    (f"build {LAVA} --out new --workers 1 --max-states 5 --horizon {{}}", _NUMBERS),
    (
        "build --env FrozenLake-v1 --out new --workers 1 --max-states 5 --env-arg {}",
        (
            "x",
            "=",
            "=1",
            "a=",
            "is_slippery=[1",
            "desc=" + "[" * 5_000,
            "a=NaN",
            "map_name=null",
            "is_slippery=false",
            "render_mode=human",
        ),
    ),
    ("build {} ", (f"{LAVA} --out ../given/pipe", f"{LAVA} --out /dev/null", f"{LAVA} --out ../given/empty", "")),
    (f"evaluate {_STUDY} --resamples {{}}", ("0", "-1", "x", "nan", "", "1.5")),
    (f"evaluate {_STUDY} --resamples 5 --seed {{}}", _NUMBERS),
    (
        f"evaluate {_STUDY} --resamples 5 --export {{}}",
        ("/dev/null", "../given/pipe", "../given/empty", "../given/empty/x", "a" * 300),
    ),
    (
        f"report {_STUDY} --out {{}}",
        ("/dev/null", "../given", "../given/study", "../given/pipe", "../given/empty", "a" * 300, "../given/empty/x"),
    ),
    ("serve ../given/site --port {}", ("-1", "65536", "x", "", "1.5", "٣", "9" * 400, "1e3")),
    ("study {} --algos none --forecast --json", _IDS),
    (f"study {LAVA} --algos {{}} --forecast", ("", ",", "x", "ppo,ppo", "none,ppo", "PPO", "\x1b[31m", "[/bold]")),
    (f"study {LAVA} --algos none --forecast --max-minutes {{}}", _TIMES),
    (f"study {LAVA} --algos none --forecast --max-states {{}}", _NUMBERS),
    (f"study {LAVA} --algos ppo --forecast --seeds 1 --steps {{}}", _NUMBERS),
    (f"study {LAVA} --out {{}} --algos none --forecast", _NAMES),
    (
        f"study {LAVA} --out new --algos none --rows {{}}",
        ("/dev/zero", "../given/pipe", "../given/study", "../given/empty", "../given/circle", "-"),
    ),
)


def arguments(case: Case) -> list[str]:
    """One command line. Lines come in turn."""
    line, values = _LINES[case.turn(len(_LINES))]
    value = case.rng().choice(values)
    return ["build", *value.split()] if line == "build {} " else [part.replace("{}", value) for part in line.split()]
