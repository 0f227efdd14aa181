"""Terminal sessions in the pages, made by running them: `make sessions`.

A block of ```console after the line `<!-- session -->` is run, command by command, in an empty folder that all sessions
of a page share, and what the commands print takes the place of what is there. Times are left out: they differ.

python docs/site/sessions.py            write them
python docs/site/sessions.py --check    only say which would change
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1]
WIDTH = "110"
_SESSION = re.compile(r"(?<=<!-- session -->\n)```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|seconds|min)\b|(?<=in )under a second|\d[\d,]*(?= per second)")


def written(page: Path) -> str:
    """The page with its sessions as they run now."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        return _SESSION.sub(lambda found: f"```console\n{_run(found[1], Path(folder))}```", text)


def _run(block: str, folder: Path) -> str:
    commands = re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": WIDTH, "NO_COLOR": "1"}
    parts = []
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr}")
        output = _TIMES.sub("...", "\n".join(line.rstrip() for line in done.stdout.splitlines()))
        parts.append(f"$ {command}\n{output}\n")
    return "\n".join(parts)


def pages() -> list[Path]:
    """The pages that have sessions."""
    return [page for page in sorted(DOCS.glob("*.md")) if _SESSION.search(page.read_text())]


def main() -> int:
    changed = []
    for page in pages():
        text = written(page)
        if text != page.read_text():
            changed.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(text)
    print(f"{'differ' if '--check' in sys.argv else 'written'}: {', '.join(changed) or 'none'}")
    return 1 if changed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
