"""Build the web site: `make docs`.

The pages are the Markdown files of the repository, as they are. This puts a copy of them together, adds the gallery,
the report of the committed study and a table of contents, lets Sphinx build it, and checks every link of the result.

python docs/site/build.py [OUT] [--quick]      --quick leaves out the gallery's pictures and the report
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import check_links
import gallery

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
NAVIGATION = {
    "Start": ["ten-minutes", "own-environment", "what-h-means", "glossary"],
    "User guide": [
        *("library", "tables", "forecast", "why", "what-if", "training", "policies", "pretraining"),
        *("study-command", "evaluation", "report", "diagnose", "stochastic", "dataset"),
    ],
    "Theory": ["theory", "bounds", "deviations"],
    "The study": [
        *("study", "gallery", "study/tables", "study/lists", "study/forecast", "study/reasons", "study/suggestions"),
        *("study/claims", "study/diagnose", "full-length-atari", "study/full-length", "minigrid-states", "survey"),
    ],
    "Reference": ["api", "scaling", "trust", "mutants"],
    "Project": ["contributing", "changelog"],
}
SHORT = {  # titles beside the pages, and of links that name a file
    "own-environment": "Your own environment",
    "study-command": "The study command",
    "evaluation": "Evaluation",
    "diagnose": "Without a table",
    "stochastic": "With chance",
    "deviations": "Deviations from the paper",
    "study": "What came out",
    "study/tables": "All tables",
    "study/lists": "All MDPs",
    "study/forecast": "Forecasts, checked",
    "study/reasons": "Reasons, checked",
    "study/suggestions": "Suggestions, checked",
    "study/claims": "Every claim",
    "study/diagnose": "Diagnoses, checked",
    "full-length-atari": "Full-length Atari",
    "study/full-length": "Full-length Atari: results",
    "minigrid-states": "MiniGrid",
    "survey": "Survey of games",
}
_MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
_REPORT = "report-of-the-study"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "build" / "site", help="default: build/site")
    parser.add_argument("--quick", action="store_true", help="no pictures in the gallery, no report")
    options = parser.parse_args()
    started = time.monotonic()
    source = options.out.parent / f"{options.out.name}-source"
    assemble(source, quick=options.quick)
    shutil.rmtree(options.out, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", "-b", "html", "-c", str(HERE)]
    done = subprocess.run([*command, "-d", str(source / "doctrees"), str(source / "pages"), str(options.out)], cwd=ROOT)
    if done.returncode:
        return done.returncode
    broken, num_links = check_links.broken_links(options.out)
    for line in broken:
        print(line)
    print(f"{options.out}: {num_links:,} links, {len(broken)} broken; {time.monotonic() - started:.0f} s")
    return 1 if broken else 0


def assemble(source: Path, *, quick: bool = False) -> None:
    """Put the pages together, with links as the site has them."""
    pages = source / "pages"
    shutil.rmtree(source, ignore_errors=True)
    pages.mkdir(parents=True)
    static = HERE / "_static"
    shutil.rmtree(static, ignore_errors=True)
    static.mkdir()
    shutil.copy(HERE / "site.css", static)
    shutil.copy(ROOT / "src" / "efhorizon" / "render" / "html" / "assets" / "icon.svg", static)
    shutil.rmtree(HERE / "extra", ignore_errors=True)
    shutil.copytree(DOCS / "study" / "figures", HERE / "extra" / "study" / "figures")  # named in HTML
    for path in sorted(DOCS.rglob("*")):
        relative = path.relative_to(DOCS)
        if path.is_dir() or relative.parts[0] == "site":
            continue
        (pages / relative).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (pages / relative).write_text(linked(path.read_text(), path))
        else:
            shutil.copy(path, pages / relative)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        (pages / _MOVED[name]).write_text(linked((ROOT / name).read_text(), ROOT / name))
    report = None if quick else _started_report(HERE / "extra" / _REPORT)  # the gallery is drawn meanwhile
    name = None if quick else _REPORT
    (pages / "gallery.md").write_text(
        gallery.page(ROOT / "data" / "study", HERE / "extra" / "gallery", name, quick=quick)
    )
    index = (pages / "index.md").read_text()
    if report is not None:
        if report.wait():
            raise SystemExit("the report of the study could not be written: run efhorizon report data/study")
        _screenshot(HERE / "extra" / _REPORT / "index.html", pages / "pictures" / "report.png")
        report_link = f"<a href='{_REPORT}/index.html'>report of the study</a>"
        index += f"\nThere is a [gallery](gallery.md) of all MDPs, and a {report_link} with a page for each.\n"
    (pages / "index.md").write_text(index + contents())


def contents() -> str:
    """The table of contents, hidden in the page and shown beside it."""
    listed = {name for names in NAVIGATION.values() for name in names}
    own = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} - {"index"}
    groups = NAVIGATION | ({"More": more} if (more := sorted(own - listed)) else {})
    head = "\n```{toctree}\n:hidden:\n:titlesonly:\n:caption: "
    shown = {
        title: [f"{SHORT[name]} <{name}>" if name in SHORT else name for name in names]
        for title, names in groups.items()
    }
    return "".join(f"{head}{title}\n\n{chr(10).join(names)}\n```\n" for title, names in shown.items())


def linked(text: str, page: Path) -> str:
    """A page with its links as the site has them; code is left as it is."""
    parts = re.split(r"(^```.*?^```$|^    [^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if number % 2 else _LINK.sub(lambda found: _target(found, page), part) for number, part in enumerate(parts)
    )


def _target(found: re.Match[str], page: Path) -> str:
    label, target = found[1], found[2]
    if re.match(r"[a-z]+:|#", target):
        return found[0]
    path, hash_, anchor = target.partition("#")
    file = (page.parent / path).resolve()
    here = page.parent if page.is_relative_to(DOCS) else DOCS  # where the page is on the site
    if file.is_relative_to(DOCS) and file.exists() and file.is_file():
        if label.endswith(".md]"):  # the name of a file says little on a web site
            label = f"[{_title(file)}]"
        return f"{label}({os.path.relpath(file, here)}{hash_}{anchor})"
    moved = _MOVED.get(str(file.relative_to(ROOT))) if file.is_relative_to(ROOT) else None
    if moved is not None:
        place = "" if moved == "index.md" else f"{hash_}{anchor}"  # the start page has other headings than README
        return f"{label}({os.path.relpath(DOCS / moved, here)}{place})"
    repository = os.environ.get("EFHORIZON_REPOSITORY")  # such as https://HOST/OWNER/NAME/blob/main
    if repository and file.is_relative_to(ROOT):
        return f"{label}({repository}/{file.relative_to(ROOT)})"
    return label.lstrip("!")[1:-1]  # the file is not part of the site: its name alone


def _title(page: Path) -> str:
    name = str(page.relative_to(DOCS).with_suffix(""))
    return SHORT.get(name) or page.read_text().partition("\n")[0].removeprefix("# ")


def _started_report(out: Path) -> subprocess.Popen[bytes]:
    """The web report of the committed study, as a part of the site; a process of its own writes it."""
    command = [sys.executable, "-m", "efhorizon", "report", str(ROOT / "data" / "study"), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _screenshot(page: Path, picture: Path) -> None:
    """A new picture of a page; the committed one stays where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    command = [browser, *options, f"--screenshot={picture}", "--window-size=1280,1600", page.as_uri()]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


if __name__ == "__main__":
    sys.exit(main())
