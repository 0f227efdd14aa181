"""From the source of a module to its mutants: one small change each, as an edit of the text.

A mutant's id is a hash of what it changes and of the line and function around that, not of the line's number: it stays
the same while other lines come and go. Annotations, decorators, docstrings, messages and assertions are left alone,
because no behaviour depends on them.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.Not: "not", ast.Invert: "~"}
_TWINS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "floor": "ceil"}
_TWINS |= {other: one for one, other in _TWINS.items()}
_ANY_ORDER = {*_TWINS, "isinstance", "gcd", "array_equal", "TypeVar"}  # calls whose first two arguments stay
_LARGE, _TINY = 100, 1e-3  # a constant beyond is doubled, not raised by one; a tolerance below is made useless


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    id: str
    module: str  # its path below src/efhorizon
    function: str  # qualified name; empty for the module's own level
    line: int
    kind: str
    start: int  # the bytes that are replaced
    end: int
    replacement: str
    in_plain_function: bool  # no kernel is compiled from the changed text

    def applied(self, source: str) -> str:
        text = source.encode()
        return (text[: self.start] + self.replacement.encode() + text[self.end :]).decode()

    def difference(self, source: str) -> str:
        lines = difflib.unified_diff(source.splitlines(), self.applied(source).splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[:3] not in ("---", "+++", "@@ "))

    @property
    def place(self) -> str:
        return f"{self.module}:{self.line}" + (f" in {self.function}" if self.function else "")


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    lines = source.splitlines()
    found: list[Mutant] = []
    seen = Counter[str]()
    for edit in sorted(finder.edits, key=lambda edit: (edit.start, edit.end, edit.replacement)):
        before = source.encode()[edit.start : edit.end].decode()
        line = lines[edit.line - 1].strip()
        key = "\0".join((module, edit.function, line, edit.kind, before, edit.replacement))
        seen[key] += 1
        name = hashlib.sha256(f"{key}\0{seen[key]}".encode()).hexdigest()[:8]
        found.append(Mutant(name, module, **vars(edit)))
    return found


@dataclass(frozen=True)
class _Edit:
    function: str
    line: int
    kind: str
    start: int
    end: int
    replacement: str
    in_plain_function: bool


class _Finder(ast.NodeVisitor):
    """Walks through a module and collects edits."""

    def __init__(self, source: str) -> None:
        self.edits: list[_Edit] = []
        self._text = source.encode()
        self._line_starts = [0]
        for line in self._text.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._functions: list[str] = []
        self._in_plain_function = False

    # where nothing is changed

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *node.kw_defaults):
            if default is not None:
                self.visit(default)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._functions.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = self._in_plain_function
        decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
        self._functions.append(node.name)
        self.visit(node.args)
        self._in_plain_function = outside or "compiled" not in decorators
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()
        self._in_plain_function = outside

    # statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._drop(node)
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._drop(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._drop(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            self._drop(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._drop(node)
        if type(node.op) in _ARITHMETIC:
            one, other = _ARITHMETIC[type(node.op)]
            self._between(node.target, node.value, f"{one}=", f"{other}=", "arithmetic")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if self._in_plain_function and not isinstance(node.value, ast.Constant):
                self._replace(node.value, "None", "returned")
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    # expressions

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
            one, other = _COMPARISONS[type(operator)]
            self._between(left, right, one, other, "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC:
            self._between(node.left, node.right, *_ARITHMETIC[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        one, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, one, other, "logic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if type(node.op) in _UNARY:
            self._replace(node, f"({self._of(node.operand)})", "negation")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        for value in _other_constants(node.value):
            self._replace(node, value, "constant")

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in _TWINS:
            end = self._span(node.func)[1]
            self._add(node.func, end - len(name), end, _TWINS[name], "extremum")
        plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
        if name == "range" and plain:
            for bound, change in zip(node.args, ("+ 1", "- 1") if len(node.args) > 1 else ("- 1",), strict=False):
                self._replace(bound, f"({self._of(bound)}) {change}", "range")
        elif len(node.args) > 1 and plain and name not in _ANY_ORDER:
            first, second = self._of(node.args[0]), self._of(node.args[1])
            start, end = self._span(node.args[0])[0], self._span(node.args[1])[1]
            middle = self._text[self._span(node.args[0])[1] : self._span(node.args[1])[0]].decode()
            if first != second:
                self._add(node.args[0], start, end, f"{second}{middle}{first}", "swapped")
        self.generic_visit(node)

    # edits

    def _drop(self, node: ast.stmt) -> None:
        self._replace(node, "pass", "dropped")

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant | ast.NamedExpr):
            self._replace(test, f"not ({self._of(test)})", "negation")

    def _between(self, left: ast.expr, right: ast.expr, one: str, other: str, kind: str) -> None:
        """Replace the operator that stands between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = r"\b" + one.replace(" ", r"\s+") + r"\b" if one[0].isalpha() else re.escape(one)
        found = list(re.finditer(pattern.encode(), self._text[start:end]))
        if len(found) == 1:
            self._add(right, start + found[0].start(), start + found[0].end(), other, kind)

    def _replace(self, node: ast.expr | ast.stmt, text: str, kind: str) -> None:
        self._add(node, *self._span(node), text, kind)

    def _add(self, node: ast.expr | ast.stmt, start: int, end: int, text: str, kind: str) -> None:
        line = node.lineno
        self.edits.append(_Edit(".".join(self._functions), line, kind, start, end, text, self._in_plain_function))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _of(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._text[start:end].decode()


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _other_constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, int):
        yield from (str(value + 1), str(value - 1)) if abs(value) <= _LARGE else (str(value * 2), str(value // 2))
    elif isinstance(value, float):
        yield "1.0" if value == 0 else repr(value * 1e6 if abs(value) < _TINY else value * 2)
