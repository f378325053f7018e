"""Make wrong versions of a function mechanically, one small change each."""

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator

_OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.Sub),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_COMPARISONS = {
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Eq: (ast.NotEq, ast.GtE, ast.LtE),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE),
}
_NAMES = {
    "max": ("min", "mean", "sum"),
    "sum": ("mean", "max", "prod"),
    "exp": ("exp2", "expm1", "abs"),
    "isneginf": ("isposinf", "isfinite"),
    "any": ("all",),
    "all": ("any",),
}


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Give each node that could stand in the place of this one."""
    if isinstance(node, ast.BinOp):
        for operator in _OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, operator(), node.right)
        yield ast.BinOp(node.right, node.op, node.left)
        yield node.left
        yield node.right
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        for operator in _COMPARISONS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [operator()], node.comparators)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int | float):
            for value in (node.value + 1, node.value - 1, -node.value, 2 * node.value):
                yield ast.Constant(value)
        elif node.value is None:
            yield ast.Constant(0)
    elif isinstance(node, ast.Attribute):
        for name in _NAMES.get(node.attr, ()):
            yield ast.Attribute(node.value, name, node.ctx)
        if node.attr == "T" or node.attr == "inf":
            yield node.value
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        for i in range(len(node.args) - 1):
            args = list(node.args)
            args[i], args[i + 1] = args[i + 1], args[i]
            yield ast.Call(node.func, args, node.keywords)
        for i in range(len(node.keywords)):
            rest = node.keywords[:i] + node.keywords[i + 1 :]
            yield ast.Call(node.func, node.args, rest)
        yield from node.args
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for name in {"q": "k", "k": "q", "v": "k"}.get(node.id, ""):
            yield ast.Name(name, node.ctx)


def mutants(function: Callable) -> Iterator[tuple[str, Callable]]:
    """Give (what was changed, the changed function) for every change of the body.

    Changes that do not compile are left out. The changed functions live in a
    copy of the original's global names.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = tree.body[0]
    seen = {ast.unparse(tree)}
    for number, place in enumerate(list(_places(body))):
        original = _get(place)
        for new in _changes(original):
            changed = copy.deepcopy(tree)
            _put(list(_places(changed.body[0]))[number], copy.deepcopy(new))
            ast.fix_missing_locations(changed)
            text = ast.unparse(changed)
            if text not in seen:
                seen.add(text)
                yield _made(changed, function, f"{_show(original)} → {_show(new)}")
    for index in range(len(body.body) - 1):
        changed = copy.deepcopy(tree)
        if ast.get_docstring(body) and index == 0:
            continue
        del changed.body[0].body[index]
        if ast.unparse(changed) not in seen:
            seen.add(ast.unparse(changed))
            yield _made(changed, function, f"without {_show(body.body[index])}")


def _made(tree: ast.Module, function: Callable, what: str) -> tuple[str, Callable]:
    space = dict(function.__globals__)
    exec(compile(tree, f"<mutant: {what}>", "exec"), space)
    return what, space[function.__name__]


def _places(root: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Give every place of an expression in the body: (parent, field, index)."""
    for parent in (n for statement in root.body for n in ast.walk(statement)):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr):
                yield parent, field, None
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield parent, field, index


def _get(place: tuple[ast.AST, str, int | None]) -> ast.AST:
    parent, field, index = place
    value = getattr(parent, field)
    return value if index is None else value[index]


def _put(place: tuple[ast.AST, str, int | None], new: ast.AST) -> None:
    parent, field, index = place
    if index is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[index] = new


def _show(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
