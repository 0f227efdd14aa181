"""Python files and modules that the user names: `my_env.py:Grid`, `my_module:Grid`, `my_module:Grid-v0`.

The working directory can be imported from, and so can the folder of a file that is named, as if Python had been started
there. A file that has changed since it was loaded is loaded again, with the modules beside it that it imports.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from efhorizon.suites.simulator import SimulatorError

_INSTALLED = tuple(  # where packages are, Python itself, and efhorizon, which has behaviour versions
    {os.path.realpath(path) for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib", "stdlib")}
    | {os.path.realpath(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    | {str(Path(__file__).resolve().parents[1])}
)
_digests: dict[str, dict[Path, str]] = {}  # file of a module -> what its files were when it was loaded


def is_file_name(name: str) -> bool:
    """Whether a name before a colon is that of a file."""
    return name.endswith(".py")


def named_object(name: str) -> tuple[ModuleType, str, Any]:
    """For `file.py:Name` or `module:Name`: the module, the name, and what it stands for there; None: nothing."""
    place, _, wanted = name.partition(":")
    module = _loaded_file(place) if is_file_name(place) else _imported(place)
    found: Any = module
    for part in wanted.split("."):
        found = getattr(found, part, None)
    return module, wanted, found


def sources(module: ModuleType) -> tuple[Path, ...]:
    """The module's file and those of the user's modules that it imports, directly or not; none that is installed."""
    file = getattr(module, "__file__", None)
    return () if file is None or is_installed(file) else _closure(Path(os.path.realpath(file)))


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package: those have versions."""
    real = os.path.realpath(file)
    return any(real.startswith(folder + os.sep) for folder in _INSTALLED)


def short_path(path: Path) -> str:
    """A path as a table should name it: relative to the working directory, where it is inside."""
    try:
        return Path(os.path.realpath(path)).relative_to(os.path.realpath(os.curdir)).as_posix()
    except ValueError:
        return path.as_posix()


def make_importable(folder: str) -> None:
    """Let modules of a folder be imported, before those of the same name elsewhere; in worker processes too."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()


def _loaded_file(place: str) -> ModuleType:
    path = Path(os.path.realpath(place))
    if not path.is_file():
        raise SimulatorError(f"{place}: there is no such file; give its path from here, as in folder/my_env.py:MyEnv")
    make_importable(os.getcwd())
    if (path.parent / "__init__.py").is_file() and (module := _in_package(path)) is not None:
        return module
    make_importable(str(path.parent))
    name = _module_name(path)
    _forget_if_changed(name)
    known = sys.modules.get(name)
    if known is not None and _file_of(known) == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _no_bytecode():
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _failed_import(place, error) from None
    _note(module)
    return module


def _in_package(path: Path) -> ModuleType | None:
    """A file of a package, which may import from its own package with dots; None if that name is taken."""
    root = _package_root(path)
    make_importable(str(root))
    module = _imported(".".join(path.relative_to(root).with_suffix("").parts))
    return module if _file_of(module) == str(path) else None


def _imported(name: str) -> ModuleType:
    make_importable(os.getcwd())
    _forget_if_changed(name)
    try:
        with _no_bytecode():
            module = importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "") in (name, *_parents(name)):
            raise SimulatorError(
                f"there is no module {name!r}, neither here nor installed; a file is named as {name}.py:MyEnv"
            ) from None
        raise _failed_import(name, error) from None
    _note(module)
    return module


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Write no compiled files beside the user's: Python would take an edit within the same second for none."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _failed_import(name: str, error: BaseException) -> BaseException:
    """An error in the user's file is one line; being interrupted is not an error."""
    if not isinstance(error, Exception | SystemExit):
        return error
    line = ""
    frame = error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if file.endswith(".py") and not is_installed(file) and "efhorizon" not in Path(file).parts:
            line = f", {Path(file).name} line {frame.tb_lineno}"
        frame = frame.tb_next
    if isinstance(error, SyntaxError):
        line = f", line {error.lineno}"
    reason = (str(error).splitlines() or [""])[0]
    return SimulatorError(f"{name} cannot be imported: {type(error).__name__}: {reason}{line}")


def _module_name(path: Path) -> str:
    """The name of a file's module: its own, unless Python or a package has that name already."""
    stem = (
        path.stem if path.stem.isidentifier() else "environment_" + hashlib.sha256(path.name.encode()).hexdigest()[:8]
    )
    if stem in sys.stdlib_module_names:
        return f"_{stem}_of_user"
    spec = importlib.util.find_spec(stem) if stem not in sys.modules else sys.modules[stem].__spec__
    origin = None if spec is None else spec.origin
    if origin is None and stem in sys.modules:
        origin = getattr(sys.modules[stem], "__file__", None)
    return stem if origin is None or os.path.realpath(origin) == str(path) else f"_{stem}_of_user"


def _note(module: ModuleType) -> None:
    """Remember what the files of a module were when it was loaded."""
    _digests.setdefault(_file_of(module), {file: _content_digest(file) for file in sources(module)})


def _forget_if_changed(name: str) -> None:
    """Unload a module whose files have changed since it was loaded here, and the user's modules that it imports."""
    place = _file_of(sys.modules.get(name))
    then = _digests.get(place)
    if then is None or all(_content_digest(file) == digest for file, digest in then.items()):
        return
    del _digests[place]
    for other, module in list(sys.modules.items()):
        if Path(_file_of(module)) in then:
            del sys.modules[other]
    importlib.invalidate_caches()


def _file_of(module: object) -> str:
    return os.path.realpath(getattr(module, "__file__", None) or os.curdir)


def _content_digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _closure(root: Path) -> tuple[Path, ...]:
    reached, waiting = {root}, [root]
    while waiting:
        for file in _imports_of(waiting.pop(), _package_root(root)):
            if file not in reached:
                reached.add(file)
                waiting.append(file)
    return tuple(sorted(reached))


def _package_root(file: Path) -> Path:
    """The folder from which the package of a file is imported."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _imports_of(file: Path, root: Path) -> list[Path]:
    """The files of the user's that a file imports, found by their names in the folders where Python would look."""
    found = []
    for level, name in _imported_names(_content_digest(file), file):
        folders = [root, Path(os.path.realpath(os.curdir))]
        if level:
            folders = [file.parents[level - 1]] if level <= len(file.parents) else []
        for folder in folders:
            found += _files_of(folder, name)
    return [path for path in found if not is_installed(str(path))]


@lru_cache(maxsize=256)
def _imported_names(digest: str, file: Path) -> tuple[tuple[int, str], ...]:
    """What a file imports: dots in front, and a dotted name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    names: dict[tuple[int, str], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(0, alias.name): None for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names[node.level, base] = None
            names |= {(node.level, f"{base}.{alias.name}".lstrip(".")): None for alias in node.names}
    return tuple(names)


def _files_of(folder: Path, name: str) -> list[Path]:
    """The files that importing a dotted name from a folder runs."""
    found, place = [], folder
    for part in filter(None, name.split(".")):
        place = place / part
        found += [path for path in (place / "__init__.py", place.with_name(f"{part}.py")) if path.is_file()]
    return [Path(os.path.realpath(path)) for path in found]
