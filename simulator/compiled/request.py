"""What a recorded launch asks of the compiler: the specialisation that Triton would make of it.

Triton specialises a kernel by dtypes, constexprs, options, integers that are 1, and which pointers
and integers are multiples of 16; on AMD also by which tensors lie within 2 GB. All of that is in a
`Launch`, so what is compiled here is what is launched there.
"""

import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from trivet.simulator._torch import triton
from trivet.simulator.binding import Launch
from trivet.simulator.compiled.targets import device_named, toolchain
from trivet.simulator.frontend import content_of, stable_name, ttir_of
from trivet.simulator.rebuild import compiled, compiled_view

_MOST_BYTES = 2**31 - 1
_INTEGERS = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})

Path_ = tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """One specialisation of a kernel for one target.

    ``signature``, ``constants`` and ``attributes`` are what Triton's frontend takes, ``options``
    those of the launch, ``leaves`` the names of the runtime arguments in order. ``text`` is the
    specialisation for people: the same for two launches exactly where Triton compiles once.
    ``key`` names all that the artifact depends on; it is empty where a constexpr has no name that
    another process would understand, and then nothing is cached.
    """

    function: Any = field(repr=False)
    target: str
    signature: dict[str, Any]
    constants: dict[Path_, object]
    attributes: dict[Path_, list[list[object]]]
    options: dict[str, object]
    leaves: tuple[str, ...]
    text: str
    key: str

    def ttir(self) -> str:
        """Return the kernel's IR after Triton's frontend for the target.

        Triton's own compilation errors come out unchanged.
        """
        with compiled_view(self.function):
            source = ASTSource(
                fn=self.function,
                signature=self.signature,
                constexprs=self.constants,
                attrs=self.attributes,
            )
            return ttir_of(source, device_named(self.target).target, self.options)


def request_of(launch: Launch, target: str) -> Request:
    """Return what ``launch`` asks of the compiler for ``target``.

    Raises ValueError for an unknown target, CompilerMissingError where nothing compiles for it.
    """
    function = compiled(launch.function)
    parts = _Parts(launch, function, target)
    options = {name: value for name, value in launch.options.items() if value is not None}
    options.setdefault("debug", bool(function.debug) or bool(triton.knobs.runtime.debug))
    shown = {k: v for k, v in options.items() if k not in parts.signature and (k != "debug" or v)}
    words = [*parts.words, *(f"{name}={shown[name]}" for name in sorted(shown))]
    return Request(
        function=function,
        target=target,
        signature=parts.signature,
        constants=parts.constants,
        attributes=parts.attributes,
        options=options,
        leaves=tuple(parts.leaves),
        text=" ".join(words),
        key=_key(function, target, parts, options),
    )


def _key(function: Any, target: str, parts: "_Parts", options: Mapping[str, object]) -> str:
    names = [(path, stable_name(value)) for path, value in sorted(parts.constants.items())]
    if not all(name for _, name in names):
        return ""
    content = (
        _reading(),
        toolchain(target),
        target,
        content_of(function),
        Path(inspect.getsourcefile(function.fn) or "").name,
        parts.signature,
        names,
        sorted(parts.attributes.items()),
        sorted((name, repr(value)) for name, value in options.items()),
        os.environ.get("TRITON_DEFAULT_FP_FUSION"),
    )
    return hashlib.sha256(repr(content).encode()).hexdigest()


@cache
def _reading() -> str:
    """Name how artifacts are read: another counting of the same artifact is another result."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class _Parts:
    """The parameters of one launch, specialised one after another."""

    def __init__(self, launch: Launch, function: Any, target: str) -> None:
        self.launch = launch
        self.backend = make_backend(device_named(target).target)
        self.signature: dict[str, Any] = {}
        self.constants: dict[Path_, object] = {}
        self.attributes: dict[Path_, list[list[object]]] = {}
        self.leaves: list[str] = []
        self.words: list[str] = []
        for number, parameter in enumerate(function.params):
            kind = launch.dtypes.get(parameter.name, "constexpr")
            self.signature[parameter.name] = self._part(
                (number,), parameter.name, kind, _Rules.of(parameter)
            )

    def _part(self, path: Path_, name: str, kind: Any, rules: "_Rules") -> Any:
        if isinstance(kind, tuple):
            return tuple(
                self._part((*path, place), f"{name}.{place}", inner, rules)
                for place, inner in enumerate(kind)
            )
        if kind == "constexpr":
            self.constants[path] = self.launch.constexprs.get(name)
            self.words.append(f"{name}={_shown(self.constants[path])}")
            return kind
        if kind in _INTEGERS and name in self.launch.equal_1 and rules.ones:
            self.constants[path] = 1
            self.words.append(f"{name}=1")
            return "constexpr"
        self.leaves.append(name)
        described = "".join(self._descriptions(name, kind, rules))
        attributes = self.backend.parse_attr(described)
        if attributes:
            self.attributes[path] = attributes
        divided = "/16" if "D" in described else ""
        self.words.append(f"{name}={kind}{divided}{'' if self._near(name, kind) else '/far'}")
        return kind

    def _descriptions(self, name: str, kind: str, rules: "_Rules") -> Iterator[str]:
        """Yield Triton's letters for an argument: D for divisible by 16, S for within 2 GB."""
        if not rules.specialised:
            return
        launch = self.launch
        if kind.startswith("*"):
            if name in launch.divisible_16 and rules.aligned:
                yield "D"
            if self._near(name, kind) and self._asks_for_range:
                yield "S"
        elif kind in _INTEGERS and name in launch.int_divisible_16 and rules.aligned:
            yield "D"

    @property
    def _asks_for_range(self) -> bool:
        return hasattr(self.backend, "is_within_2gb") and bool(triton.knobs.amd.use_buffer_ops)

    def _near(self, name: str, kind: str) -> bool:
        """Whether a tensor spans less than 2 GB, where the target makes a difference of it."""
        if not kind.startswith("*") or not hasattr(self.backend, "is_within_2gb"):
            return True
        shape, strides = self.launch.shapes.get(name, ()), self.launch.strides.get(name, ())
        if 0 in shape:
            return True
        last = sum((size - 1) * abs(step) for size, step in zip(shape, strides, strict=True))
        return (last + 1) * _bytes(kind) <= _MOST_BYTES


@dataclass(frozen=True, slots=True)
class _Rules:
    """How Triton specialises one parameter."""

    ones: bool
    aligned: bool
    specialised: bool

    @classmethod
    def of(cls, parameter: Any) -> "_Rules":
        """Read a parameter: annotated numbers keep their type, whatever their value."""
        named = parameter.annotation_type if isinstance(parameter.annotation_type, str) else ""
        free = not parameter.do_not_specialize
        return cls(
            ones=free and not named,
            aligned=not parameter.do_not_specialize_on_alignment,
            specialised=free and not (named == "u1" or named[:2] in ("fp", "bf")),
        )


def _bytes(kind: str) -> int:
    digits = "".join(c for c in kind.lstrip("*k").partition("e")[0] if c.isdigit())
    return max(1, int(digits or 8) // 8)


def _shown(value: object) -> str:
    """Return a constexpr as people read it."""
    name = getattr(value, "__name__", "")
    return str(name or value)
