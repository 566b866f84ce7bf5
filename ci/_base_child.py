"""The process that measures another revision: its kernels, this trivet.

Every way in which Python would find the repository's own modules is turned to the other tree
before any of them is imported.
"""

import importlib
import importlib.util
import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trivet
from trivet.ci.base import Tree

if TYPE_CHECKING:
    from trivet.properties._collect import Found


def main() -> None:
    """Read what is asked, redirect imports, measure, and write the rows."""
    request, answer = map(Path, sys.argv[-2:])
    asked = json.loads(request.read_text())
    tree = Tree("", Path(asked["top"]), Path(asked["root"]))
    redirect(tree)
    from trivet.ci.measuring import measure_contracts

    found = [each for about in asked["contracts"] if (each := _found(about, tree)) is not None]
    rows = measure_contracts(found, asked["workers"])
    for row in rows:
        if row.file and Path(row.file).is_relative_to(tree.top):
            raise SystemExit(
                f"{row.kernel} was imported from {row.file}, not from the revision: "
                "its module is found in a way that cannot be turned to another folder"
            )
    answer.write_bytes(pickle.dumps(rows))


def redirect(tree: Tree) -> None:
    """Let imports of the repository's modules find those of ``tree``; trivet itself stays."""
    package = Path(trivet.__file__).resolve().parent
    home = package.parent
    sys.path[:] = [
        entry if Path(entry) == home else str(tree.counterpart(Path(entry))) for entry in sys.path
    ]
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None)  # setuptools' editable installs
        if name.startswith("__editable__") and isinstance(mapping, dict):
            for key, value in mapping.items():
                if key != "trivet":
                    mapping[key] = str(tree.counterpart(Path(value)))
    kernels = tree.counterpart((package / "impl").resolve())
    if kernels != (package / "impl").resolve():
        _take_package("trivet.impl", kernels)


def _take_package(name: str, folder: Path) -> None:
    """Import the package ``name`` from ``folder``, whatever lies beside this trivet."""
    if not (folder / "__init__.py").exists():
        return
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(trivet, name.rpartition(".")[2], module)


def _found(about: Mapping[str, str], tree: Tree) -> "Found | None":
    """Find a contract in the tree; None where it is not there, or does not load."""
    from trivet.properties._collect import Found, load_file
    from trivet.properties._contract import Contract

    name, source, variable = about["name"], about["source"], about["variable"]
    path = tree.counterpart(Path(about["path"]).resolve())
    try:
        module: Any
        if source == name:
            module = importlib.import_module(f"trivet.properties.{name.partition('.')[0]}")
        elif source.rpartition(":")[0].endswith(".py"):
            module = load_file(path)
        else:
            module = importlib.import_module(source.rpartition(":")[0])
    except Exception as error:
        print(f"trivet: the base has no {name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    contract = getattr(module, variable, None)
    return Found(name, contract, path, variable, source) if isinstance(contract, Contract) else None
