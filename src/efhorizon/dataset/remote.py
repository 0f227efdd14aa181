"""Where a data set is: a folder, an http(s) address, or a repository on the Hugging Face Hub.

    /data/efhorizon             a folder
    https://example.org/data    a web server that serves the folder
    hf://OWNER/NAME             a data set on the Hub; hf://OWNER/NAME@REVISION for a tag or commit

`#sha256=...` at the end pins the registry: a data set with any other content is refused. Nothing is sent but requests
for files, and an answer that leads to another host is refused. The Hub keeps large files on hosts of its own, which
are named here.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from efhorizon.errors import EfhorizonError

VARIABLE = "EFHORIZON_REMOTE"
_HUB = "huggingface.co"
_HUB_HOSTS = (".huggingface.co", ".hf.co")  # where the Hub keeps large files
_HUB_NAME = re.compile(r"(?:datasets/)?([\w.-]+/[\w.-]+)(?:@([\w./-]+?))?/?")
_HUB_PAGE = re.compile(rf"https://{re.escape(_HUB)}/(datasets/[\w.-]+/[\w.-]+)/?")
_PIN = re.compile(r"(.*)#sha256=([0-9a-f]{64})", re.DOTALL)
_SAFE_PATH = "/@=+~,!"  # what stays as it is in an address


class RemoteError(EfhorizonError):
    """A remote that is not one, or that cannot be reached."""


@dataclass(frozen=True)
class Remote:
    """A place that holds a data set."""

    given: str  # as the user wrote it
    folder: Path | None = None
    address: str | None = None  # of the folder, without a slash at the end
    pin: str | None = None  # SHA-256 of the registry
    trusted_hosts: tuple[str, ...] = ()  # endings of other hosts that files may come from, over https

    def file(self, path: str) -> Path:
        """The local file with this path."""
        assert self.folder is not None
        return self.folder / path

    def url(self, path: str) -> str:
        """The address of the file with this path."""
        return f"{self.address}/{quote(path, safe=_SAFE_PATH)}"

    def allows(self, before: str, after: str) -> bool:
        """Whether an answer may lead from one address to another."""
        try:
            first, second = urlsplit(before), urlsplit(after)
            ports = first.port, second.port
        except ValueError:
            return False
        if (first.scheme, first.netloc) == (second.scheme, second.netloc):
            return True
        host = (second.hostname or "").lower()
        if (first.scheme, second.scheme, host) == ("http", "https", first.hostname):
            return ports[0] in (None, 80) and ports[1] in (None, 443)
        return second.scheme == "https" and any(host.endswith(ending) for ending in self.trusted_hosts)


def configured(given: str | Path | None = None) -> Remote | None:
    """The remote that was given, or that of EFHORIZON_REMOTE; None if there is neither."""
    text = str(given) if given is not None else os.environ.get(VARIABLE, "")
    return remote(text) if text.strip() else None


def needed(given: str | Path | None = None) -> Remote:
    """The same, where nothing can be done without one."""
    found = configured(given)
    if found is None:
        raise RemoteError(
            f"no data set is configured: set {VARIABLE} to a folder, an http(s) address or hf://OWNER/NAME, "
            "or give --remote"
        )
    return found


def remote(text: str) -> Remote:
    """What a text means."""
    text = text.strip()
    pinned = _PIN.fullmatch(text)
    place, pin = (pinned[1], pinned[2]) if pinned else (text, None)
    if page := _HUB_PAGE.fullmatch(place):  # as it stands in the browser
        place = f"hf://{page[1]}"
    scheme = place.partition("://")[0].lower() if "://" in place else ""
    if scheme == "hf":
        named = _HUB_NAME.fullmatch(place[len("hf://") :])
        if named is None or ".." in place:
            raise RemoteError(f"{text[:200]}: not a repository on the Hugging Face Hub; write hf://OWNER/NAME")
        address = f"https://{_HUB}/datasets/{named[1]}/resolve/{quote(named[2] or 'main', safe='')}"
        return Remote(text, address=address, pin=pin, trusted_hosts=_HUB_HOSTS)
    if scheme in ("http", "https"):
        if not _is_folder_address(place):
            raise RemoteError(f"{text[:200]!a}: not the address of a folder; write https://HOST/FOLDER")
        return Remote(text, address=place.rstrip("/"), pin=pin)
    if scheme and scheme != "file":
        raise RemoteError(f"{text[:200]}: {scheme[:20]}:// is not supported; use a folder, http(s):// or hf://")
    path = Path(place[len("file://") :] if scheme else place)
    with suppress(RuntimeError):  # no home folder of that name: then it is a folder with a tilde
        path = path.expanduser()
    return Remote(text, folder=path.absolute(), pin=pin)


def _is_folder_address(place: str) -> bool:
    try:
        parts = urlsplit(place)
        is_port = parts.port != 0  # raises ValueError above 65,535
        host = (parts.hostname or "").encode("idna")
    except ValueError:
        return False
    is_plain = place.isprintable() and " " not in place
    return bool(host) and is_port and is_plain and not (parts.query or parts.fragment or parts.username is not None)
