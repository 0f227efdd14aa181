"""Mutations of .npy: the header's text, the numbers behind it."""

from __future__ import annotations

import io
import pickle
import re
from random import Random

import numpy as np
from numpy.lib import format as npy

from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target

_SHAPES = (
    *("(True, 3)", "(False,)", "()", "(0,)", "(-1, 3)", "(1.5, 2)", "('a',)", "3", "None", "[3, 3]", "(3, 3, 3, 3, 3)"),
    *("(1099511627776, 7)", "(4294967296, 4294967296)", f"({'9' * 400},)", f"({'9' * 5000},)"),
    "(2, " * 300 + ")" * 300,
    "(" * 100_000,
)
_DTYPES = (
    *("'|O'", "'<f8'", "'>i8'", "'<i2'", "'|b1'", "'<U5'", "'|V8'", "'<M8[s]'", "'<c16'", "'nonsense'", "''", "None"),
    *("3", "[('a', '<i8'), ('b', '|O')]", "[('a', '<i8', (1000000000,))]", "'<f2'", "'<U1000000000'", "[" * 300),
)
_HEADERS = ("", "{", "}", "[]", "1", "None", "{'descr': '<i8'}", "__import__('os')", "\xff" * 20, "{" * 5000)


def parts(content: bytes) -> tuple[tuple[int, int], str, bytes]:
    """Version, header and data of an .npy."""
    version = content[6], content[7]
    size = 2 if version == (1, 0) else 4
    length = int.from_bytes(content[8 : 8 + size], "little")
    header = content[8 + size : 8 + size + length].decode("latin-1")
    return version, header, content[8 + size + length :]


def joined(version: tuple[int, int], header: str, data: bytes, length: int | None = None) -> bytes:
    text = header.encode("latin-1", "replace")
    if version == (1, 0) and len(text) > 65_535:
        version = 2, 0
    size = 2 if version == (1, 0) else 4
    told = (len(text) if length is None else length) & (256**size - 1)
    return b"\x93NUMPY" + bytes(version) + told.to_bytes(size, "little") + text + data


def header_changed(content: bytes, rng: Random) -> tuple[bytes, str]:
    """An .npy with something else in its header."""
    version, header, data = parts(content)
    kind = rng.choice(["shape", "descr", "fortran_order", "version", "unclosed", "other", "length", "key", "magic"])
    if kind in ("shape", "descr", "fortran_order"):
        options = {"shape": _SHAPES, "descr": _DTYPES, "fortran_order": ("True", "3", "'x'", "None")}[kind]
        value = rng.choice(options)
        pattern = {"shape": r"\([^)]*\)", "descr": r"'[^']*'", "fortran_order": r"\w+"}[kind]
        header = re.sub(rf"('{kind}': ){pattern}", lambda found: found[1] + value, header, count=1)
        return joined(version, header, data), f"{kind} {value[:40]}"
    if kind == "version":
        version = rng.choice([(1, 0), (2, 0), (3, 0), (9, 9), (0, 0), (255, 255)])
        return joined(version, header, data), f"version {version}"
    if kind == "length":
        length = rng.choice([0, 1, 65_535, 2**31, 2**32 - 1])
        return joined(version, header, data, length), f"a header of {length} bytes, as it says"
    if kind == "magic":
        return rng.choice([b"", b"\x93NUMPX", b"\x80\x04"]) + content[rng.choice([0, 6, 8]) :], "another beginning"
    if kind == "other":
        header = rng.choice(_HEADERS)
    elif kind == "key":
        header = header.replace("'shape'", rng.choice(["'shapes'", "'shape': (3,), 'shape'", "'extra': 1, 'shape'"]))
    else:
        header = header.replace("}", "").rstrip()
    return joined(version, header, data), f"header {header[:40]!r}"


def values_changed(content: bytes, rng: Random) -> tuple[bytes, str]:
    """An .npy with other numbers, or fewer or more of them."""
    version, header, data = parts(content)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except ValueError:
        raise NotApplicableError from None
    if not array.size:
        raise NotApplicableError
    kind = rng.choice(["value", "value", "value", "shorter", "longer", "type", "rows", "columns"])
    if kind == "shorter":
        return joined(version, header, data[: rng.randrange(len(data))]), "fewer bytes than the header says"
    if kind == "longer":
        return joined(version, header, data + bytes(rng.choice([1, 8, 100_000]))), "more bytes than the header says"
    if kind == "type":
        array = array.astype(rng.choice(["<f8", "<i8", "<u1", "<f4", "|b1", "<U3", "<c8", ">i4"]))
    elif kind == "rows":
        array = rng.choice([array[:-1], np.concatenate([array, array]), array[:0], array[::-1]])
    elif kind == "columns":
        array = rng.choice([array[..., None], array.reshape(-1), array.T, array[..., :1]])
    else:
        value = rng.choice([0, 1, -1, -2, 2**31 - 1, 2**31, -(2**63), 1e39, 1e300, np.nan, np.inf, -np.inf, 1e-300])
        with np.errstate(all="ignore"):
            flat = array.reshape(-1)
            where = slice(None) if rng.random() < 0.2 else rng.randrange(flat.size)
            if array.dtype.kind != "f":
                low, high = _range(array.dtype)
                value = low if value != value else int(min(max(value, low), high))
            flat[where] = value
        kind = f"{'all' if where == slice(None) else 'one'} {value}"
    file = io.BytesIO()
    npy.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue(), f"other values: {kind}"


def _range(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    if dtype.kind not in "iu":
        return 0, 1
    limits = np.iinfo(dtype)  # type: ignore[type-var]
    return int(limits.min), int(limits.max)


_ARRAYS = Mutations()


@_ARRAYS.add()
def npy_header(target: Target, rng: Random) -> str:
    content, what = header_changed(target.file.read_bytes(), rng)
    target.file.write_bytes(content)
    return what


@_ARRAYS.add()
def npy_values(target: Target, rng: Random) -> str:
    content, what = values_changed(target.file.read_bytes(), rng)
    target.file.write_bytes(content)
    return what


@_ARRAYS.add()
def npy_pickled(target: Target, rng: Random) -> str:
    target.file.write_bytes(rng.choice([pickle.dumps([1, 2]), pickled_array()]))
    return "pickled objects"


def pickled_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{}, None], object), allow_pickle=True)
    return file.getvalue()


NPY = Mutations(_ARRAYS, _ARRAYS, ANY_FILE, SPECIAL_FILES)
