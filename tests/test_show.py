"""The page of a contract: written as its author wrote it, whatever the objects' own repr."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from trivet.ci.show import readable, relative


@dataclass
class Domain:
    lo: object = 0
    hi: object = 1
    kinds: tuple[object, ...] = ()
    storage: dict[str, str] = field(default_factory=dict)
    parsed: object = field(init=False, repr=False, default=None)


def test_only_what_was_given_is_shown() -> None:
    formula = SimpleNamespace(text="2*N", tree=object())

    assert readable(Domain()) == "Domain()"
    assert readable(Domain(hi=formula)) == "Domain(hi=2*N)"
    assert readable(Domain(lo=float, kinds=("f", 1))) == "Domain(lo=float, kinds=('f', 1))"


def test_a_function_is_shown_by_name() -> None:
    assert readable(Domain(lo=relative)) == "Domain(lo=relative)"


def test_paths_are_shown_from_here() -> None:
    assert relative(Path.cwd() / "examples" / "a.py") == os.path.join("examples", "a.py")
    assert relative("/elsewhere/a.py") == "/elsewhere/a.py"
