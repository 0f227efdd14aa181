"""The tour runs from top to bottom and says what it should."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytest.importorskip("torch")
NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "tour.ipynb"


def test_the_tour(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert len(notebook.cells) <= 22
    assert not any(cell.get("outputs") for cell in notebook.cells)  # committed without outputs
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    texts = [_text(cell) for cell in notebook.cells if cell.cell_type == "code"]
    said = "\n".join(texts)
    assert "H = 3.63 (exact): k = 1, m = 18\n5,400 steps" in said
    assert "PlainResult(sample_complexity=" in said  # the user's bound
    assert "5 of 5 environments complete" in said
    assert "S T, my own" in texts[-1]  # in the comparison


def _text(cell: nbformat.NotebookNode) -> str:
    """What a cell printed or returned."""
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(parts)
