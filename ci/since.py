"""Which functions changed since a git revision; the work tree stays as it is."""

import ast
import subprocess
from collections.abc import Iterable
from pathlib import Path

from trivet.ci.errors import CannotJudgeError


def changed_functions(files: Iterable[str], revision: str) -> frozenset[tuple[str, str]]:
    """Return the functions, as (file, qualified name), whose text a revision does not have so.

    A function that uses a name whose definition in the module changed has changed as well. Raises
    CannotJudgeError where git does not know the revision, or a file lies in no repository.
    """
    found: set[tuple[str, str]] = set()
    for file in sorted(set(files)):
        before = _text_at(Path(file), revision)
        found |= {(file, name) for name in _changed(before, Path(file).read_text())}
    return frozenset(found)


def _text_at(file: Path, revision: str) -> str:
    """Return what a file held at a revision; empty where it was not there."""
    top = Path(_git(file.resolve().parent, "rev-parse", "--show-toplevel").strip())
    _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", what=revision)
    name = file.resolve().relative_to(top.resolve()).as_posix()
    if not _git(top, "ls-tree", revision, "--", name):
        return ""
    return _git(top, "show", f"{revision}:{name}")


def _git(folder: Path, *arguments: str, what: str = "") -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotJudgeError("--since needs git, which is not installed") from None
    if done.returncode:
        reason = done.stderr.strip() or "no such revision"
        raise CannotJudgeError(f"--since {what}: {reason}" if what else f"--since: {reason}")
    return done.stdout


def _changed(before: str, after: str) -> list[str]:
    old, new = _parts(before), _parts(after)
    renewed = {name for name, text in new.items() if old.get(name) != text}
    changed = []
    for name, function in _functions(ast.parse(after).body, ""):
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        plain = {each for each in renewed if each.startswith("=")}
        if name in renewed or {f"={each}" for each in used} & plain:
            changed.append(name)
    return changed


def _parts(text: str) -> dict[str, str]:
    """Return the syntax of every function, and of what else defines a name ("=name")."""
    body = ast.parse(text).body
    found = {name: ast.dump(node) for name, node in _functions(body, "")}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found[f"={each.id}"] = found.get(f"={each.id}", "") + ast.dump(node)
            elif isinstance(each, ast.alias):
                bound = each.asname or each.name.partition(".")[0]
                found[f"={bound}"] = ast.dump(node)
    return found


def _functions(body: list[ast.stmt], prefix: str) -> Iterable[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body, prefix)
