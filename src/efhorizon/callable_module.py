"""Folders that can be called: `efhorizon.build` is a folder of this package and a function for users.

Python makes a folder an attribute of the package as soon as something in it is imported, so a function of the same name
would be hidden by it. Instead the folder itself is made callable, and hands on to the function of that name in
`efhorizon.library`, which is imported when it is first called.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that is also a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module("efhorizon.library"), self.__name__.rpartition(".")[2])
        return function


def make_callable(name: str) -> None:
    """Make a module of this package callable; called by the module itself, as it is imported."""
    sys.modules[name].__class__ = CallableModule
