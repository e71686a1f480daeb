"""Small faults that can be put into source code, one at a time: mutants of a module.

In: a source file. Out: every place where an operator, a constant, an argument or a call can be
changed, and the syntax tree with that one change. Texts, annotations, decorators and errors stay.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
PAIRS = ("min max", "minimum maximum", "argmin argmax", "floor ceil", "any all", "log log1p")
OPPOSITES = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
UNWRAPPED = {"abs", "exp", "log", "log1p", "expm1", "sqrt", "square", "sort", "cumsum", "flip"}
LEFT_ALONE = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)
# Fields that hold no calculation, and functions that write text only.
SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "bases"}
TEXTS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Change:
    """One mutant: where it is, what it reads before and after, how it is put in.

    ``first`` and ``last`` are the lines of the statement up to the change. ``inside`` tells
    whether it is in the body of a function; else it acts when the module is loaded.
    """

    first: int
    last: int
    column: int
    before: str
    after: str
    inside: bool
    apply: Callable[[], None]


@dataclass(frozen=True)
class _Spot:
    """A node, the first line of its statement, and how another node takes its place."""

    node: ast.AST
    first: int
    inside: bool
    replace: Callable[[ast.AST], None]


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yield every change of ``tree``, always in the same order; apply one at most."""
    for spot in _spots(tree, 1, inside=False):
        before, last = ast.unparse(spot.node), getattr(spot.node, "end_lineno", spot.first)
        for other in _alternatives(spot.node):
            yield Change(
                spot.first,
                last,
                getattr(spot.node, "col_offset", 0),
                before,
                ast.unparse(other),
                spot.inside,
                lambda spot=spot, other=other: spot.replace(ast.copy_location(other, spot.node)),
            )


def mutated(path: Path, index: int) -> ast.Module:
    """Return the syntax tree of ``path`` with its change number ``index``."""
    tree = ast.parse(path.read_text())
    next(change for i, change in enumerate(changes(tree)) if i == index).apply()
    return ast.fix_missing_locations(tree)


def _spots(parent: ast.AST, first: int, *, inside: bool) -> Iterator[_Spot]:
    for field, value in ast.iter_fields(parent):
        if field in SKIPPED or (isinstance(parent, ast.keyword) and parent.arg == "strict"):
            continue
        within = inside or (
            field == "body" and isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        for i, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _is_left_alone(node):
                continue
            line = node.lineno if isinstance(node, ast.stmt) else first
            yield _Spot(node, line, within, _replacer(parent, field, value, i))
            yield from _spots(node, line, inside=within)


def _replacer(parent: ast.AST, field: str, value: object, index: int) -> Callable[[ast.AST], None]:
    if isinstance(value, list):
        return lambda other: value.__setitem__(index, other)
    return lambda other: setattr(parent, field, other)


def _is_left_alone(node: ast.AST) -> bool:
    return (
        isinstance(node, LEFT_ALONE)
        or (isinstance(node, ast.FunctionDef) and node.name in TEXTS)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        or (isinstance(node, ast.Assign) and _is_a_type(node.value))
    )


def _is_a_type(node: ast.AST) -> bool:
    """Tell whether an expression is made of names and ``|`` alone: ``Label = int | str``."""
    parts = (ast.BinOp, ast.BitOr, ast.Name, ast.Subscript, ast.Attribute, ast.Tuple, ast.Load)
    return isinstance(node, ast.BinOp) and all(
        isinstance(n, parts) or (isinstance(n, ast.Constant) and n.value in (None, ...))
        for n in ast.walk(node)
    )


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for other in OPERATORS[type(op)]:
                    yield _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
        case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right)):
            for other in OPERATORS.get(type(node.op), ()):
                yield _with(node, op=other())
        case ast.BoolOp():
            yield _with(node, op=OPERATORS[type(node.op)][0]())
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield copy.deepcopy(node.operand)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))
        case ast.Constant(value=float()):
            yield ast.Constant(2 * node.value or 1.0)
        case ast.Return(value=ast.AST()) if not (_is_none(node.value) or _is_text(node.value)):
            yield ast.Return(ast.Constant(None))
        case ast.IfExp() | ast.If() | ast.While() if isinstance(node.test, ast.Name | ast.Call):
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in OPPOSITES:
        func = copy.deepcopy(node.func)
        setattr(func, "attr" if isinstance(func, ast.Attribute) else "id", OPPOSITES[name])
        yield _with(node, func=func)
    if name in UNWRAPPED and node.args:
        yield copy.deepcopy(node.args[0])
    starred = any(isinstance(a, ast.Starred) for a in node.args[:2])
    if len(node.args) > 1 and not starred and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        yield _with(node, args=[node.args[1], node.args[0], *node.args[2:]])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, copy.deepcopy(value))
    return other


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
