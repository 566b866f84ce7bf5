"""Triton's own frontend, to the text of its IR and a parsed module, cached by content.

The IR is that of the passes of `make_ttir` for one fixed target, sm_90. Integers are general:
neither divisibility by 16 nor the value 1 is specialised, so one kernel has one IR per dtype and
constexpr.
"""

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from trivet.simulator import parser
from trivet.simulator._torch import triton
from trivet.simulator.cache import cache_folder, write_whole
from trivet.simulator.ir import Module
from trivet.simulator.rebuild import compiled, compiled_view, is_interpreted, reached

TARGET = GPUTarget("cuda", 90, 32)
FORMAT = "1"

# Device assertions are kept, checks of integer overflow are not: the arithmetic wraps as on a GPU.
_OPTIONS = {"debug": True, "sanitize_overflow": False}
# IR by its content key: functions loaded anew from the same text are lowered and parsed once.
_known: "WeakValueDictionary[str, Lowered]" = WeakValueDictionary()
_READ_OPTIONS = ("default_dot_input_precision", "allowed_dot_input_precisions", "enable_fp_fusion")

Signature = Mapping[str, Any]
Path_ = str | tuple[int, ...]
Asked = tuple[dict[str, Any], dict[tuple[int, ...], object], dict[str, object]]


class UnsupportedKernelError(Exception):
    """The kernel is written in a language that the simulator does not run."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """The IR of one kernel for one signature: its text, its content key, and parsed on demand."""

    text: str
    key: str

    @cached_property
    def module(self) -> Module:
        """The parsed module."""
        return parser.parse(self.text)


class _Memory:
    """What is known of one function: the key of its source, and its IR per specialisation."""

    def __init__(self) -> None:
        self.source = ""
        self.content = ""
        self.hash: str | None = None
        self.lowered: dict[object, Lowered] = {}
        self.asked: dict[object, Asked] = {}
        self.kept: list[object] = []
        self.globals: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}


def lower(
    fn: Any,
    signature: Signature,
    constexprs: Mapping[Any, object],
    options: Mapping[str, object] | None = None,
) -> Lowered:
    """Lower ``fn`` to TTIR for one signature.

    ``signature`` maps parameter names to Triton's type names ("*fp32", "i32", tuples of them);
    parameters it lacks are constexpr. ``constexprs`` maps names, or paths into tuples, to values.
    Of ``options`` (num_warps and so on) only those that change the IR count. Triton's own
    compilation errors come out unchanged; UnsupportedKernelError is raised for a Gluon kernel.
    """
    fn = compiled(fn)
    if fn.is_gluon():
        raise UnsupportedKernelError(f"{fn.__name__} is a Gluon kernel; the simulator runs Triton")
    read = {k: v for k, v in (options or {}).items() if k in _READ_OPTIONS and v is not None}
    values = {_path(fn, k): compiled(_plain(v)) for k, v in constexprs.items()}
    memory = _memory_of(fn)
    quick = (repr(signature), _constants_key(values, memory), repr(read), *_settings())
    found = memory.lowered.get(quick)
    if found is None:
        found = memory.lowered[quick] = _lower_once(fn, memory, signature, values, read, quick)
        memory.asked[quick] = (dict(signature), values, read)
    return found


def specialisations(fn: Any) -> list[Asked]:
    """Return the arguments of every ``lower`` of ``fn`` in this process: what its launches used."""
    return list(_memory_of(compiled(fn)).asked.values())


def content_of(fn: Any) -> str:
    """Return the key of the text of ``fn`` and of all it calls and reads, wherever it stands."""
    return _memory_of(compiled(fn)).content


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, triton.language.constexpr) else value


def _settings() -> tuple[object, ...]:
    """What the frontend reads of its surroundings: whether it fuses, how dots of float32 round."""
    precision = getattr(triton.knobs.language, "fp32_default", None)
    return os.environ.get("TRITON_DEFAULT_FP_FUSION"), precision


def _path(fn: Any, key: Path_) -> tuple[int, ...]:
    return (fn.arg_names.index(key),) if isinstance(key, str) else key


def _constants_key(
    values: Mapping[tuple[int, ...], object], memory: _Memory
) -> tuple[tuple[tuple[int, ...], str | int], ...]:
    """Name every constexpr; one without a stable name goes by its identity and is kept alive."""
    key = []
    for path, value in sorted(values.items(), key=lambda item: item[0]):
        name = stable_name(value)
        if not name:
            memory.kept.append(value)
        key.append((path, name or id(value)))
    return tuple(key)


def stable_name(value: Any) -> str:
    """Name a constexpr by its content, the same in every process; empty where it has no name."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if hasattr(value, "cache_key"):
        with compiled_view(value):
            return f"jit:{value.cache_key}"
    if isinstance(value, triton.language.dtype):
        return f"dtype:{value}"
    if isinstance(value, tuple | list):
        parts = [stable_name(part) for part in value]
        return f"{type(value).__name__}({','.join(parts)})" if all(parts) else ""
    return ""


def _memory_of(fn: Any) -> _Memory:
    memory: _Memory | None = getattr(fn, "_trivet_memory", None)
    if memory is None:
        # An attribute, because hashing a JITFunction already computes Triton's own key.
        memory = fn._trivet_memory = _Memory()
    if memory.hash is None or fn.hash != memory.hash or _globals_changed(memory):
        _refresh(fn, memory)
    return memory


def _globals_changed(memory: _Memory) -> bool:
    """Tell whether a global constexpr that the function or a callee reads has changed."""
    absent = object()
    return any(
        bool(scope.get(name, absent) != value)
        for (name, _), (value, scope) in memory.globals.items()
    )


def _refresh(fn: Any, memory: _Memory) -> None:
    with compiled_view(fn):
        functions = reached(fn)
        for function in functions:
            function.hash = None
        content = fn.cache_key
        files = sorted({function.fn.__code__.co_filename for function in functions})
    memory.hash = fn.hash
    memory.content = content
    memory.source = _digest(FORMAT, triton.__version__, content, *files)
    memory.lowered.clear()
    memory.asked.clear()
    # Of every function itself: Triton 3.6 leaves out the callees' at first.
    memory.globals = {
        key: used
        for function in functions
        for key, used in function.used_global_vals.items()
        if not is_interpreted(used[0])
    }


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _lower_once(
    fn: Any,
    memory: _Memory,
    signature: Signature,
    values: Mapping[tuple[int, ...], object],
    read: Mapping[str, object],
    quick: tuple[object, ...],
) -> Lowered:
    key = _digest(memory.source, *quick)
    known = _known.get(key)
    if known is not None:
        return known
    path = None
    if all(stable_name(value) for value in values.values()):
        path = cache_folder("ir") / f"{fn.__name__[:80]}-{key[:32]}.ttir"
    text = _read(path)
    if text is None:
        with compiled_view(fn):
            text = text_of(fn, signature, values, read)
        _write(path, text)
    lowered = Lowered(text, key)
    if path is not None:
        _known[key] = lowered
    return lowered


def _read(path: Path | None) -> str | None:
    try:
        return path.read_text() if path is not None else None
    except OSError:
        return None


def _write(path: Path | None, text: str) -> None:
    """Store by atomic rename; a folder that cannot be written only costs the next process time."""
    if path is None:
        return
    try:
        write_whole(path, text)
    except OSError:
        return


def text_of(
    fn: Any,
    signature: Signature,
    values: Mapping[tuple[int, ...], object],
    read: Mapping[str, object],
) -> str:
    """Return the IR of Triton's frontend for one entry of ``specialisations``, nothing cached."""
    types = {name: signature.get(name, "constexpr") for name in fn.arg_names}
    source = ASTSource(fn=fn, signature=types, constexprs=dict(values))
    return ttir_of(source, TARGET, {**_OPTIONS, **read})


def ttir_of(source: ASTSource, target: GPUTarget, given: Mapping[str, object]) -> str:
    """Return the IR after the passes of ``make_ttir`` for ``target``, with options as given.

    Triton's own compilation errors come out unchanged.
    """
    backend = make_backend(target)
    options = backend.parse_options(dict(given))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = _call(
        source.make_ir,
        target=target,
        options=options,
        codegen_fns=backend.get_codegen_implementation(options),
        module_map=backend.get_module_map(),
        context=context,
    )
    capability = target.arch if isinstance(target.arch, int) else 0
    lowered = _call(
        backend.make_ttir,
        mod=module,
        metadata={},
        opt=options,
        options=options,
        capability=capability,
    )
    return str(lowered)


def _call(function: Callable[..., Any], **offered: object) -> Any:
    """Call with the parameters this release of Triton has, of all those it may have."""
    accepted = inspect.signature(function).parameters
    return function(**{name: value for name, value in offered.items() if name in accepted})
