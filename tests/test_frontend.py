"""Lowering: content keys, both caches, interpreted functions rebuilt, errors that stay Triton's."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import triton
import triton.language as tl

from trivet.simulator import frontend
from trivet.simulator.frontend import lower
from trivet.simulator.rebuild import compiled, is_interpreted

SOURCE = """
import triton
import triton.language as tl
import {helpers} as helpers

SHIFT = tl.constexpr({shift})


@triton.jit
def helper(x):
    return x + SHIFT{extra}


@triton.jit
def entry(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    v = helpers.double(helper(v)) + tl.sum(v, axis=0) + v.max(axis=0)
    tl.store(o + i, v, mask=i < n)


def in_closure(factor):
    @triton.jit
    def inner(x):
        return x * 3

    @triton.jit
    def outer(x, o):
        tl.store(o, inner(tl.load(x)))

    return outer


@triton.jit
def wrong(x):
    tl.store(x, undefined_name)
"""
HELPERS = """
import triton


@triton.jit
def double(x):
    return x * 2
"""
SIGNATURE = {"x": "*fp32", "o": "*fp32", "n": "i32"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "cache" / "ir"


def load(folder: Path, name: str = "kernels", shift: int = 1, extra: str = "") -> ModuleType:
    path = folder / f"{name}.py"
    helpers = f"helpers_{folder.name}"
    (folder / f"{helpers}.py").write_text(HELPERS)
    sys.modules.pop(helpers, None)
    path.write_text(SOURCE.format(shift=shift, extra=extra, helpers=helpers))
    spec = importlib.util.spec_from_file_location(f"{name}_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_general_integers_and_source_lines(tmp_path: Path) -> None:
    lowered = lower(load(tmp_path).entry, SIGNATURE, {"B": 32})
    assert "%n: i32" in lowered.text
    assert "divisibility" not in lowered.text
    assert lowered.module.entry.name == "entry"
    assert f'"{tmp_path / "kernels.py"}":18' in lowered.text


def test_second_lowering_is_the_same_object(tmp_path: Path) -> None:
    module = load(tmp_path)
    first = lower(module.entry, SIGNATURE, {"B": 32})
    assert lower(module.entry, SIGNATURE, {"B": 32}, {"num_warps": 8}) is first
    assert lower(module.entry, SIGNATURE, {"B": 64}) is not first
    assert lower(module.entry, {**SIGNATURE, "x": "*bf16"}, {"B": 32}) is not first


def test_disk_cache_by_content(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lower(load(tmp_path).entry, SIGNATURE, {"B": 32})
    assert [path.read_text() for path in cache.glob("*.ttir")] == [first.text]
    monkeypatch.setattr(frontend, "text_of", lambda *_: pytest.fail("compiled again"))
    again = lower(load(tmp_path).entry, SIGNATURE, {"B": 32})
    assert (again.key, again.text) == (first.key, first.text)


def test_callee_and_global_change_the_key(tmp_path: Path) -> None:
    keys = {
        lower(load(tmp_path, shift=shift, extra=extra).entry, SIGNATURE, {"B": 32}).key
        for shift, extra in ((1, ""), (2, ""), (1, " + 1"))
    }
    assert len(keys) == 3


def test_a_changed_global_is_lowered_again(tmp_path: Path) -> None:
    module = load(tmp_path)
    first = lower(module.entry, SIGNATURE, {"B": 32})
    module.SHIFT = type(module.SHIFT)(5)
    second = lower(module.entry, SIGNATURE, {"B": 32})
    assert second.key != first.key
    assert "5.000000e+00" in second.text


def test_interpreted_functions_are_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = lower(load(tmp_path).entry, SIGNATURE, {"B": 32})
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    module = load(tmp_path)
    assert is_interpreted(module.entry)
    assert lower(compiled(module.entry), SIGNATURE, {"B": 32}).text == plain.text
    assert is_interpreted(module.helper)
    assert is_interpreted(module.helpers.double)
    assert os.environ["TRITON_INTERPRET"] == "1"
    closure = lower(module.in_closure(3), {"x": "*fp32", "o": "*fp32"}, {})
    assert "3.000000e+00" in closure.text


def test_compile_errors_are_tritons(tmp_path: Path) -> None:
    from triton.compiler.errors import CompilationError

    with pytest.raises(CompilationError, match="undefined_name"):
        lower(load(tmp_path).wrong, {"x": "*fp32"}, {})


def test_an_unwritable_cache_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "file"))
    assert "tt.func" in lower(load(tmp_path).entry, SIGNATURE, {"B": 32}).text


def test_missing_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.simulator import _requirements

    monkeypatch.setattr(
        _requirements, "_installed", {"torch": "2.1.0+cpu", "triton": ""}.__getitem__
    )
    with pytest.raises(_requirements.RequirementError) as caught:
        _requirements.require()
    for part in ("torch 2.1.0+cpu", "triton missing", "torch >= 2.7", "triton >= 3.6"):
        assert part in str(caught.value)


def test_triton_imported_under_the_variable(tmp_path: Path) -> None:
    """tl.sum and x.max are interpreted functions themselves in such a process."""
    load(tmp_path)
    code = (
        "import os, sys; os.environ['TRITON_INTERPRET'] = '1'\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import kernels\n"
        "from trivet.simulator.frontend import lower\n"
        f"print(lower(kernels.entry, {SIGNATURE!r}, dict(B=32)).text.count('tt.reduce'))\n"
        "import triton.language as tl\n"
        "print(type(tl.sum).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout.split() == ["4", "InterpretedFunction"], done.stderr


@triton.jit
def product(x, y):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tile = tl.load(x + i * 16 + j)
    tl.store(y + i * 16 + j, tl.dot(tile, tile))


def test_what_triton_is_told_of_dots_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = {"x": "*fp32", "y": "*fp32"}
    assert "tf32" in lower(product, signature, {}).text
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    assert "tf32" not in lower(product, signature, {}).text
    monkeypatch.delenv("TRITON_F32_DEFAULT")
    assert "tf32" in lower(product, signature, {}).text
