"""Whether every link and picture of a built site leads to a file of it, and every anchor to a place in that file."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := found.get(name)))
        self.links += [value for name in ("href", "src") if (value := found.get(name))]


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(errors="replace"))
    return page


def broken_links(site: Path) -> tuple[list[str], int]:
    """One line for each broken link, and how many links there are."""
    broken, count = [], 0
    for path in sorted(site.rglob("*.html")):
        for link in _read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.path.endswith("/"):
                target = target / "index.html"
            where = f"{path.relative_to(site)}: {link}"
            if not target.exists():
                broken.append(f"{where}: not there")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).anchors:
                broken.append(f"{where}: no such place in it")
    return broken, count


if __name__ == "__main__":
    lines, number = broken_links(Path(sys.argv[1]))
    print("\n".join([*lines, f"{number:,} links, {len(lines)} broken"]))
    sys.exit(bool(lines))
