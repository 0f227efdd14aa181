"""From arguments to an exit code: parse, run one command, turn errors into one line.

Exit codes: 0 done; 1 an error, said in one line; 2 wrong usage or an unknown name; 3 a budget ended the work early;
130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from efhorizon.catalog import UnknownNameError
from efhorizon.commands import _exit, _output
from efhorizon.commands._exit import UsageError
from efhorizon.commands._parser import command, parser
from efhorizon.errors import EfhorizonError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # ×10⁶ where the encoding has no superscripts
    given = parser()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(given)  # answers the shell and exits
    if not (sys.argv[1:] if arguments is None else arguments):
        given.print_help()
        return _exit.USAGE
    options = argparse.Namespace()
    try:
        options = given.parse_args(arguments)
        options.typed = list(sys.argv[1:] if arguments is None else arguments)
        with _output.for_results_only() if getattr(options, "json", False) else nullcontext():
            code = command(options.verb).run(options)
        sys.stdout.flush()  # here, where a reader that has gone is no surprise
        return code
    except (UsageError, UnknownNameError) as error:
        return _failed(error, _exit.USAGE)
    except EfhorizonError as error:
        return _failed(error, _exit.ERROR)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has seen enough, as in `| head`
        return _exit.DONE
    except KeyboardInterrupt:
        return _failed(f"interrupted: {_kept(options)}", _exit.INTERRUPTED)
    except (MemoryError, OSError, RuntimeError) as error:
        if _is_out_of_memory(error):
            return _failed(f"out of memory: {_kept(options)}", _exit.ERROR)
        if not isinstance(error, OSError):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", _exit.ERROR)


def _kept(options: argparse.Namespace) -> str:
    """What a command that has ended early leaves behind: asked now, so that it is what is there now."""
    if not hasattr(options, "verb"):
        return _exit.NOTHING_KEPT
    return str(getattr(command(options.verb), "kept", lambda _: _exit.NOTHING_KEPT)(options))


def _is_out_of_memory(error: Exception) -> bool:
    """NumPy, Numba and Python raise MemoryError; the system says ENOMEM, and torch puts it into words."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or "not enough memory" in str(error) or "can't allocate memory" in str(error)


def _failed(message: object, code: int) -> int:
    from efhorizon.commands import _terminal

    return _terminal.failed(message, code)
