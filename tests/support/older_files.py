"""Files as older versions wrote them and other people may: without a checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def rewritten(path: Path, **changes: Any) -> Path:
    """A JSON file with other fields, and without its checksum."""
    content = json.loads(path.read_text()) | changes
    content.pop("checksum", None)
    path.write_text(json.dumps(content))
    return path
