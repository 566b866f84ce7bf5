"""Static metrics of recorded launches: compiled in a child process, kept on disk by content."""

import hashlib
import json
import linecache
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trivet.simulator import parser, ptx
from trivet.simulator.binding import Launch
from trivet.simulator.cache import cache_folder, write_whole
from trivet.simulator.compiled import gcn
from trivet.simulator.compiled._child import Artifact, Task
from trivet.simulator.compiled.compiler import compile_task
from trivet.simulator.compiled.cost import Cost, cost_of
from trivet.simulator.compiled.listing import Place
from trivet.simulator.compiled.metrics import Found, Value, metrics_of
from trivet.simulator.compiled.request import Request, request_of
from trivet.simulator.compiled.targets import device_named, is_nvidia, tool_path

_LINES_OF_COST = {
    "bytes_read": "read",
    "bytes_written": "written",
    "bytes_atomic": "atomic",
    "atomics": "atomic",
    "matrix_rank": "matrix",
    "matrix_kind": "matrix",
    "matrix_operations": "matrix",
    "double_operations": "double",
}
_LOCATION = re.compile(r'"([^"]+)":(\d+):\d+')
# Where the artifact has nothing left to point at: the line that asks for it in the source.
_LINES_OTHERWISE = {"async_copies": "read", "double": "double"}


@dataclass(frozen=True)
class Measurement:
    """What one launch compiles to for one target.

    ``metrics`` are those of the artifact, and the bytes and operations of the whole launch;
    ``lines`` name the source line of a metric, ``file.py:17: text``, where it has one; ``rounding``
    counts what the PTX or AMD's assembly rounds. ``error`` says why it does not compile: no
    metrics then.
    """

    kernel: str
    specialisation: str
    target: str
    metrics: Mapping[str, Value] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    rounding: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


def measure(launches: Sequence[Launch], target: str, *, whole: bool = True) -> list[Measurement]:
    """Return the static metrics of every launch, in order, for one target.

    Launches of one specialisation are compiled once. Where not ``whole``, their rounding is read
    but no metrics: disassembling costs as much as compiling. Raises ValueError for an unknown
    target, CompilerMissingError where Triton's tools for it are not installed, CompilerError where
    the compiler was killed.
    """
    compiled: dict[str, _Compiled] = {}
    found: list[Measurement] = []
    for launch in launches:
        request = request_of(launch, target)
        key = _launch_key(request, launch, whole)
        known = _load(key)
        if known is not None:
            found.append(Measurement(**known))
            continue
        held = compiled.setdefault(request.key or f"{id(launch)}", _Compiled(request, whole))
        found.append(held.measurement(launch))
        if not held.crashed:
            _store(key, asdict(found[-1]))
    return found


def _launch_key(request: Request, launch: Launch, whole: bool) -> str:
    about = (launch.grid, sorted(launch.scalars.items())) if whole else "built"
    return _key_with(request, about)


def _key_with(request: Request, *further: object) -> str:
    """Name a result by its specialisation and what else it depends on."""
    if not request.key:
        return ""
    return hashlib.sha256(repr((request.key, *further)).encode()).hexdigest()


class _Compiled:
    """One specialisation, compiled when its first launch asks for it."""

    def __init__(self, request: Request, whole: bool) -> None:
        self.request = request
        self.whole = whole
        self.crashed = False
        self._held: dict[str, Any] | None = None

    def measurement(self, launch: Launch) -> Measurement:
        """Return the metrics of one launch of this specialisation."""
        request = self.request
        held = self._artifact()
        about = (launch.kernel, request.text, request.target)
        if held["error"]:
            return Measurement(*about, error=held["error"])
        if not self.whole:
            lines = {"kernel": _line(_definition(request.function))}
            return Measurement(*about, {}, lines, held["rounding"])
        metrics, lines = dict(held["metrics"]), dict(held["lines"])
        module = parser.parse(held["ttir"])
        cost = cost_of(module, launch.grid, request.leaves, launch.scalars)
        metrics.update(_of_launch(cost, launch.programs, metrics))
        for name, kind in _LINES_OF_COST.items():
            place = cost.place(kind)
            if place is not None:
                lines[name] = _line(place)
        for name, kind in _LINES_OTHERWISE.items():
            place = cost.place(kind)
            if place is not None:
                lines.setdefault(name, _line(place))
        lines.setdefault("kernel", _line(_definition(request.function)))
        return Measurement(*about, metrics, lines, held["rounding"])

    def _artifact(self) -> dict[str, Any]:
        if self._held is None:
            self._held = _load(self._key)
        if self._held is None:
            self._held = self._compile()
            if not self.crashed:
                _store(self._key, self._held)
        return self._held

    @property
    def _key(self) -> str:
        return _key_with(self.request, "artifact", self.whole)

    def _compile(self) -> dict[str, Any]:
        request = self.request
        nothing = {"metrics": {}, "lines": {}, "rounding": {}, "ttir": ""}
        if request.function.is_gluon():
            return {**nothing, "error": "it is a Gluon kernel; only Triton's are compiled here"}
        try:
            text = request.ttir()
        except Exception as error:
            return {**nothing, "error": f"{type(error).__name__}: {error}"}
        read = self.whole and is_nvidia(request.target)
        tools = ("nvdisasm", "cuobjdump") if read else ()
        paths = [str(tool_path(name)) for name in tools]
        task = Task(text, device_named(request.target).target, _sendable(request.options), *paths)
        artifact = compile_task(task, what=f"{request.function.__name__} for {request.target}")
        self.crashed = artifact.crashed
        if artifact.error:
            return {**nothing, "error": artifact.error}
        found = metrics_of(artifact, request.target) if self.whole else Found()
        return {
            "metrics": found.metrics,
            "lines": _lines(found, text),
            "rounding": _rounding(artifact, text),
            "ttir": text,
            "error": "",
        }


def _of_launch(cost: Cost, programs: int, metrics: Mapping[str, Value]) -> dict[str, Value]:
    """The bytes and operations of a whole launch, and instructions for each kilobyte moved."""
    straight, looped = int(metrics["instructions"]), int(metrics["loop_instructions"])
    issued = (straight + looped * (max(1, cost.iterations) - 1)) * int(metrics["num_warps"])
    operations = cost.matrix + cost.floating
    return {
        "bytes_read": cost.read * programs,
        "bytes_written": cost.written * programs,
        "bytes_atomic": cost.atomic * programs,
        "matrix_operations": cost.matrix * programs,
        "float_operations": cost.floating * programs,
        "double_operations": cost.double * programs,
        "unknown_loops": cost.unknown,
        "instructions_per_kilobyte": round(1000 * issued / cost.moved, 2) if cost.moved else 0,
        "operations_per_byte": round(operations / cost.moved, 3) if cost.moved else 0,
    }


def _rounding(artifact: Artifact, ttir: str) -> dict[str, Any]:
    text = artifact.ptx
    return ptx.to_json(ptx.parse(text) if text else gcn.parse(artifact.assembly, ttir))


def _sendable(options: Mapping[str, object]) -> dict[str, object]:
    """Options the child needs: those the later stages read are plain values."""
    plain = (bool, int, float, str, tuple)
    return {name: value for name, value in options.items() if isinstance(value, plain)}


def _lines(found: Found, ttir: str) -> dict[str, str]:
    """Name the line of each metric.

    An assembler numbers the lines of inline assembly on from the source line that it stands for:
    such a number is taken back to the last line that the IR knows.
    """
    known: dict[str, list[int]] = {}
    for path, number in sorted(set(_LOCATION.findall(ttir)), key=lambda item: int(item[1])):
        known.setdefault(path, []).append(int(number))
    lines = {}
    for name, (path, number) in found.places.items():
        before = [line for line in known.get(path, ()) if line <= number]
        lines[name] = _line((path, before[-1] if before else number))
    return lines


def _line(place: Place) -> str:
    """Name a source line; a decorator's, where a function begins, is that of the function."""
    path, number = place
    lines = [line.strip() for line in linecache.getlines(path)[number - 1 :]]
    below = 0
    if lines and lines[0].startswith("@"):
        below = next((n for n, line in enumerate(lines) if line.startswith("def ")), 0)
    text = lines[below] if lines else ""
    return f"{os.path.basename(path)}:{number + below}: {text}"


def _definition(function: Any) -> Place:
    code = function.fn.__code__
    return code.co_filename, code.co_firstlineno


def _path(key: str) -> Path:
    return cache_folder("compiled") / key[:2] / f"{key[2:34]}.json"


def _load(key: str) -> dict[str, Any] | None:
    if not key:
        return None
    try:
        loaded = json.loads(_path(key).read_text())
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _store(key: str, value: Mapping[str, Any]) -> None:
    """Keep a result; a folder that cannot be written only costs the next process time."""
    if not key:
        return
    try:
        write_whole(_path(key), json.dumps(value))
    except OSError:
        return
