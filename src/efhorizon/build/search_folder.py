"""The folder of a search: locked by one process at a time, and always the same folder, even if its path is reused.

Everything is opened relative to the folder that was locked. So a process whose folder is deleted, and perhaps made anew
by another process, fails; it never writes into what is not its own.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from io import FileIO
from pathlib import Path

from efhorizon.errors import StoreError

_LOCK = "lock"
_TEMPORARY = (".commit.json.", ".config.json.")  # older versions put the number of the process in between


class SearchFolder:
    """An open folder that no other process works in until it is closed."""

    def __init__(self, path: Path) -> None:
        """Lock a folder, which is made if there is none; refused at once if another process works in it."""
        self.path = path
        with ExitStack() as stack:
            try:
                path.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, self._descriptor)
                self._lock(stack)
                self.check_place()
                self._remove_remains()
            except BlockingIOError:
                raise StoreError(f"{path}: another build is working on this search; wait for it or stop it") from None
            except OSError as error:
                raise StoreError(f"{path}: cannot be opened ({error.strerror})") from None
            self.close = stack.pop_all().close

    def open(self, name: str, flags: int = 0) -> FileIO:
        """A file of this folder, to read and write; does not wait for a pipe."""
        try:
            return FileIO(os.open(name, os.O_RDWR | os.O_NONBLOCK | flags, 0o644, dir_fd=self._descriptor), "r+")
        except OSError as error:
            raise StoreError(f"{self.path / name}: cannot be opened ({error.strerror})") from None

    def check_place(self) -> None:
        """Refuse a folder that was deleted or replaced since it was opened."""
        try:
            is_here = os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            is_here = False
        if not is_here:
            raise StoreError(f"{self.path}: deleted by another process at this moment; run the same command again")

    def replace(self, name: str, content: bytes) -> None:
        """Replace a small file in one step."""
        temporary = f".{name}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=self._descriptor)
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            os.rename(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            os.fsync(self._descriptor)
        except OSError as error:
            raise StoreError(
                f"{self.path / name}: cannot be written ({error.strerror}); what was committed is kept"
            ) from None

    def _lock(self, stack: ExitStack) -> None:
        """Lock the folder itself, which holds even if somebody removes the lock file, and the lock file, which works on
        file systems that cannot lock folders."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # NFS, say
            pass
        lock = os.open(_LOCK, os.O_RDWR | os.O_NONBLOCK | os.O_CREAT, 0o644, dir_fd=self._descriptor)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _remove_remains(self) -> None:
        """Temporary files of processes that were killed."""
        for name in os.listdir(self._descriptor):
            if name.startswith(_TEMPORARY) and name.endswith(".tmp"):
                os.unlink(name, dir_fd=self._descriptor)
