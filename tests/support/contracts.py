"""A contract for import-linter: a private module (`_x.py`) is used in its own folder only."""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class PrivateModulesContract(Contract):
    """No import of a module whose name begins with an underscore from another folder than its own and those in it."""

    allowed = fields.SetField(subfield=fields.StringField(), required=False)  # private names that all may use

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        allowed = set(self.allowed or ())
        broken = sorted(
            (importer, module)
            for module in graph.modules
            if _is_private(module) and module not in allowed
            for importer in graph.find_modules_that_directly_import(module)
            if not f"{_folder(importer, graph)}.".startswith(f"{module.rpartition('.')[0]}.")
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, module in check.metadata["broken"]:
            output.print_error(f"{importer} imports {module}, which is private to another folder")


def _is_private(module: str) -> bool:
    name = module.rpartition(".")[2]
    return name.startswith("_") and not name.startswith("__")


def _folder(module: str, graph: Any) -> str:
    """The package that a module lies in; a package is its own."""
    return module if graph.find_children(module) else module.rpartition(".")[0]
