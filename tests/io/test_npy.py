"""Files with one array, and archives of arrays that are no tables: policies and parameters."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from efhorizon import StoreError
from efhorizon.io import npy, npz
from efhorizon.io.npy import read_numbers
from efhorizon.io.npz import read_arrays


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as error:
        read_numbers(path, "a policy")
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def test_arrays_of_numbers_are_read(tmp_path: Path) -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.float32(1.5)):
        np.save(tmp_path / "x.npy", array)
        found = read_numbers(tmp_path / "x.npy", "a policy")
        assert (found.shape, found.tolist()) == (np.shape(array), array.tolist())


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, ), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2",
        "{'descr': '|S8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "(" * 9000,
    ],
)
def test_damaged_headers_are_refused(tmp_path: Path, header: str) -> None:
    text = header.encode().ljust(118) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(8))
    assert "not an array" in refusal(tmp_path / "x.npy")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "."):
        assert "not a regular file" in refusal(tmp_path / name)
    assert "No such file" in refusal(tmp_path / "nothing")
    np.save(tmp_path / "x.npy", np.zeros(10))
    monkeypatch.setattr(npy, "available_memory", lambda: 79)
    assert "80 bytes of memory are needed, more than is available" in refusal(tmp_path / "x.npy")


def test_archives_of_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(1000), b=np.ones(2))
    assert {name: array.sum() for name, array in read_arrays(path, "parameters", 10_000).items()} == {"a": 0, "b": 2}
    monkeypatch.setattr(npz.Member, "array", lambda member: pytest.fail("data was read"))
    with pytest.raises(StoreError, match="8,016 bytes are too many for parameters"):
        read_arrays(path, "parameters", 8_015)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        read_arrays(tmp_path / "pipe", "parameters", 10_000)
