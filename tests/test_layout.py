"""The house rules that a machine can decide, each tried on a planted offence as well."""

import ast
import importlib
import inspect
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trivet

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("impl", "oracles", "simulator", "properties", "faults", "ci")
FAMILY_FOLDERS = ("impl", "oracles", "properties", "faults")
# What a module of each folder may import of ours, besides its own folder.
ALLOWED = {
    "impl": (),
    "oracles": (),
    "simulator": ("impl", "oracles"),
    "properties": ("impl", "oracles", "simulator"),
    "faults": ("impl", "oracles", "simulator", "properties"),
    "ci": ("impl", "oracles", "simulator", "properties", "faults"),
}
LONGEST_FILE = 400
LONGEST_FUNCTION = 40
LARGEST_FACE = 40
TOLERANCE_NAMES = {"rtol", "atol", "rel_tol", "abs_tol", "tol", "tolerance"}
TOLERANCE_CALLS = {"allclose", "isclose", "assert_close", "assert_allclose", "approx"}
ERROR_LIKE = re.compile(r"tol|err|diff|eps|gap", re.IGNORECASE)


def python_files() -> list[Path]:
    """Every Python file of the repository, once (src/ holds links to the same files)."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines() if not line.startswith("src/")]
    return [path for path in paths if path.is_file()]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


FILES = python_files()
TREES = {path: ast.parse(path.read_text(), str(path)) for path in FILES}


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from trivet import ci` names a folder, `from trivet import Contract` the face.
            folders = [alias.name for alias in node.names if alias.name in LAYERS]
            if node.module == "trivet" and folders:
                yield from (f"trivet.{folder}" for folder in folders)
            elif node.module != "trivet" or [a.name for a in node.names] != ["__version__"]:
                yield node.module


def wrong_imports(layer: str, tree: ast.AST) -> list[str]:
    wrong = []
    for module in imports_of(tree):
        top, _, rest = module.partition(".")
        if top == "trivet":
            # The public face stands for properties, where contracts are made.
            target = rest.partition(".")[0] or "properties"
            if target in LAYERS and target != layer and target not in ALLOWED[layer]:
                wrong.append(module)
        elif layer == "oracles" and top in ("torch", "triton"):
            wrong.append(module)
    return wrong


def long_functions(tree: ast.AST) -> list[str]:
    return [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
        and not any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def is_small(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < 1


def tolerances(tree: ast.AST) -> list[str]:
    """Literal tolerances: rtol=.., allclose(..), tolerance = 1e-3, error < 1e-3."""
    found = []
    for node in ast.walk(tree):
        guilty = False
        if isinstance(node, ast.keyword):
            guilty = node.arg in TOLERANCE_NAMES
        elif isinstance(node, ast.Call):
            guilty = ast.unparse(node.func).rpartition(".")[2] in TOLERANCE_CALLS
        elif isinstance(node, ast.Assign):
            names = {ast.unparse(target) for target in node.targets}
            guilty = bool(names & TOLERANCE_NAMES) and is_small(node.value)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            guilty = any(map(is_small, sides)) and any(
                ERROR_LIKE.search(ast.unparse(side)) for side in sides
            )
        if guilty:
            found.append(f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}")
    return found


def may_hold_tolerances(path: Path) -> bool:
    name = name_of(path)
    return name.startswith(("oracles/_", "examples/conventional/")) or name in (
        "ci/_rivals.py",
        name_of(Path(__file__)),
    )


def helpers_of(oracle: Callable[..., object]) -> set[str]:
    """The functions of kernel families' oracles (and of examples) that ``oracle`` can reach."""
    reached: set[str] = set()
    pending = [inspect.unwrap(oracle)]
    while pending:
        function = pending.pop()
        for name in names_in(function.__code__):
            value = inspect.unwrap(function.__globals__.get(name, name))
            home = getattr(value, "__module__", None) or ""
            is_machinery = home.startswith("trivet.oracles._")
            is_ours = home.startswith("trivet.") or home == function.__module__
            label = f"{home}.{getattr(value, '__qualname__', name)}"
            if inspect.isfunction(value) and is_ours and not is_machinery and label not in reached:
                reached.add(label)
                pending.append(value)
    return reached


def names_in(code: object) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from names_in(constant)


def families(folder: str) -> set[str]:
    entries = (ROOT / folder).iterdir()
    stems = (p.stem for p in entries if p.suffix == ".py" or (p / "__init__.py").is_file())
    return {stem for stem in stems if not stem.startswith("_")}


def test_kernel_families_have_the_same_stem_in_four_folders() -> None:
    stems = {folder: families(folder) for folder in FAMILY_FOLDERS}
    every = set().union(*stems.values())
    lacking = {f: sorted(every - found) for f, found in stems.items() if every - found}
    assert not lacking, f"folders without a file for a kernel family: {lacking}"


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer: str) -> None:
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == layer]
    assert files
    wrong = {name_of(path): found for path in files if (found := wrong_imports(layer, TREES[path]))}
    assert not wrong, f"{layer} may import of ours only {ALLOWED[layer]} and itself: {wrong}"


@pytest.mark.parametrize(
    ("layer", "source", "offends"),
    [
        ("impl", "from trivet.simulator.launch import Launch", True),
        ("impl", "from trivet import Contract", True),
        ("impl", "from trivet.impl._checks import check", False),
        ("oracles", "import torch", True),
        ("oracles", "def f():\n    from trivet.impl import cfc", True),
        ("simulator", "from trivet.properties._case import Case", True),
        ("properties", "from trivet import ci", True),
        ("properties", "from trivet import Contract", False),
        ("faults", "from trivet import __version__, ci", True),
        ("ci", "from trivet.faults._judge import judge_fault", False),
    ],
)
def test_a_wrong_import_is_seen(layer: str, source: str, offends: bool) -> None:
    assert bool(wrong_imports(layer, ast.parse(source))) == offends


def test_files_are_short() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    long = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert not long, f"files over {LONGEST_FILE} lines: {long}"


def test_functions_are_short() -> None:
    long = {name_of(path): found for path, tree in TREES.items() if (found := long_functions(tree))}
    assert not long, f"functions over {LONGEST_FUNCTION} lines: {long}"


def test_a_long_function_is_seen() -> None:
    body = "\n".join("    x = 1" for _ in range(LONGEST_FUNCTION))
    assert long_functions(ast.parse(f"def f():\n{body}")) == ["f (41 lines)"]
    assert not long_functions(ast.parse(f"@triton.jit\ndef f():\n{body}"))


def test_no_tolerance_is_chosen_by_hand() -> None:
    found = {
        name_of(path): lines
        for path, tree in TREES.items()
        if not may_hold_tolerances(path) and (lines := tolerances(tree))
    }
    assert not found, f"a bound is a formula with a reason, never a literal: {found}"


@pytest.mark.parametrize(
    "source",
    [
        "np.allclose(a, b)",
        "torch.testing.assert_close(a, b)",
        "check(a, b, rtol=r)",
        "tolerance = 1e-3",
        "assert max_err < 1e-5",
        "assert abs(a - b) == pytest.approx(c)",
    ],
)
def test_a_literal_tolerance_is_seen(source: str) -> None:
    assert tolerances(ast.parse(source))


def test_a_comparison_without_tolerance_is_not_one() -> None:
    assert not tolerances(ast.parse("if fraction < 0.5 or (error <= bound).all(): pass"))


def test_two_oracles_of_a_kernel_share_no_helper() -> None:
    from trivet.properties._collect import find

    shared = {}
    for found in find():
        reached = [helpers_of(oracle) for oracle in found.contract.oracles]
        both = {
            helper
            for number, first in enumerate(reached)
            for second in reached[number + 1 :]
            for helper in first & second
        }
        if both:
            shared[found.name] = sorted(both)
    assert not shared, f"oracles that share a helper are not independent: {shared}"


def _root_of_two(x: float) -> float:
    return x**0.5


def _first(x: float) -> float:
    return _root_of_two(x)


def _second(x: float) -> list[float]:
    return [_root_of_two(x) for x in [x]]


def test_a_shared_helper_is_seen() -> None:
    shared = helpers_of(_first) & helpers_of(_second)
    assert {label.rpartition(".")[2] for label in shared} == {"_root_of_two"}


def test_the_public_face_fits_on_a_screen() -> None:
    assert len(trivet.__all__) <= LARGEST_FACE
    for name in trivet.__all__:
        assert getattr(trivet, name) is not None


def test_every_module_can_be_imported() -> None:
    for layer in LAYERS:
        importlib.import_module(f"trivet.{layer}")


def test_nothing_is_left_unfinished() -> None:
    marks = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX)\b")
    own = {Path(__file__)}
    found = {
        name_of(path): sorted(set(marks.findall(path.read_text())))
        for path in FILES
        if path not in own and marks.search(path.read_text())
    }
    assert not found, f"unfinished marks: {found}"
