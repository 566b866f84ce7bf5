"""A stand-in for device="cuda" where torch was built for the CPU.

Suites written for a GPU run unmodified: whatever asks for ``cuda`` lives in the CPU's memory and
says that it lives on ``cuda:0``; tensors that were asked for on the CPU go on saying ``cpu``.
A tensor nobody can tell of (a gradient, a parameter) counts as one on the device. Only the thread
that enters the stand-in, and autograd on its behalf, is answered so.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from trivet.simulator.cuda_module import patches
from trivet.simulator.nested import leaves, mapped

_CPU = torch.device("cpu")
_CUDA = torch.device("cuda", 0)
_MARK = "_trivet_on_the_host"
_DEVICE = torch.Tensor.device.__get__
_IS_CUDA = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]
_IS_CPU = torch.Tensor.is_cpu.__get__  # type: ignore[attr-defined]
_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]

Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]


@contextmanager
def cuda_on_cpu() -> Iterator[None]:
    """Answer for a CUDA device in this thread until the context ends; restores all of torch."""
    standin = _Standin()
    with ExitStack() as stack:
        for patched in patches(on_host, standin.set_default_device, standin.default_device):
            stack.enter_context(patched)
        stack.enter_context(patch.object(BackwardCFunction, "apply", standin.backward_of_function))
        stack.enter_context(standin)
        yield


@contextmanager
def plain_torch() -> Iterator[None]:
    """Let torch answer for itself, for the time of a launch."""
    with torch._C.DisableTorchFunction():
        yield


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Let ``tensor`` say that it lives on the CPU; returns it."""
    setattr(tensor, _MARK, True)
    return tensor


def _is_on_host(tensor: torch.Tensor) -> bool:
    return bool(getattr(tensor, _MARK, False)) or tensor.device.type not in ("cpu", "cuda")


class _Standin(TorchFunctionMode):
    """Rewrites the devices of every call and keeps in mind which tensors stay on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self._default: torch.device | None = None
        self._set_default = torch.set_default_device

    def set_default_device(self, device: Any) -> None:
        """Stand in for ``torch.set_default_device``."""
        wanted = None if device is None else _as_device(device)
        self._default = wanted if wanted is not None and wanted.type == "cuda" else None
        self._set_default(device if self._default is None else None)

    def default_device(self) -> torch.device:
        """Stand in for ``torch.get_default_device``."""
        return self._default or _CPU

    @property
    def backward_of_function(self) -> Callable[..., Any]:
        """Stand in for the call of a Function's backward: torch answers for itself inside grad."""
        original = BackwardCFunction.apply

        def apply(node: Any, *args: Any) -> Any:
            stack = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
            with nullcontext() if self in stack else self:
                return original(node, *args)  # type: ignore[no-untyped-call]

        return apply

    def _backward(
        self,
        tensor: torch.Tensor,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        with self:
            torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        """Answer one call of torch's."""
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        answer = self._backward if func is torch.Tensor.backward else _ANSWERS.get(func)
        if answer is not None:
            return answer(*args, **(kwargs or {}))
        given = [leaf for leaf in leaves((args, dict(kwargs or {}))) if _is_tensor(leaf)]
        wanted, args, kwargs = _without_cuda(args, kwargs or {})
        if wanted is None and not given:
            wanted = self._default
        result = func(*args, **kwargs)
        if func == _SET_DATA:
            _mark(args[0], _is_on_host(args[1]))
            return result
        host = all(map(_is_on_host, given)) if wanted is None else wanted.type != "cuda"
        for tensor in filter(_is_tensor, leaves(result)):
            if not any(tensor is other for other in given):
                _mark(tensor, host)
        return result


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _mark(tensor: torch.Tensor, host: bool) -> None:
    setattr(tensor, _MARK, host)


def _as_device(value: Any) -> torch.device:
    return torch.device("cuda", value) if isinstance(value, int) else torch.device(value)


def _without_cuda(args: Arguments, kwargs: Keywords) -> tuple[Any, Arguments, dict[str, Any]]:
    """Return the device that is asked for, None without one, and the arguments for a CPU build."""
    devices = [leaf for leaf in leaves(args) if isinstance(leaf, torch.device)]
    keywords = {name: value for name, value in kwargs.items() if name != "pin_memory"}
    if keywords.get("device") is not None:
        keywords["device"] = _as_device(keywords["device"])
        devices.append(keywords["device"])
    wanted = devices[-1] if devices else None
    return wanted, mapped(_on_cpu, args), mapped(_on_cpu, keywords)


def _on_cpu(value: Any) -> Any:
    return _CPU if isinstance(value, torch.device) and value.type == "cuda" else value


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Stand in for ``Tensor.to``: a copy where the tensor changes its device."""
    target = kwargs.get("device", args[0] if args else None)
    other = kwargs.get("other", target)
    if isinstance(other, torch.Tensor):
        host = _is_on_host(other)
    elif target is None or isinstance(target, torch.dtype):
        host = _is_on_host(tensor)
    else:
        device = _as_device(target)
        host = device.type != "cuda"
        moved = _CPU if device.type == "cuda" else device
        args, kwargs = (
            (args, {**kwargs, "device": moved})
            if "device" in kwargs
            else ((moved, *args[1:]), kwargs)
        )
    if host != _is_on_host(tensor):
        kwargs = {**kwargs, "copy": True}
    result = tensor.to(*args, **kwargs)
    if result is not tensor:
        _mark(result, host)
    return result


def _device(tensor: torch.Tensor) -> torch.device:
    found = _DEVICE(tensor)
    return found if _is_on_host(tensor) else _CUDA


def _cuda(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _to(tensor, _CUDA)


def _cpu(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _to(tensor, _CPU)


_ANSWERS: dict[Any, Callable[..., Any]] = {
    _DEVICE: _device,
    _IS_CUDA: lambda tensor: not _is_on_host(tensor),
    _IS_CPU: lambda tensor: _device(tensor).type == "cpu",
    torch.Tensor.to: _to,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.cpu: _cpu,
    torch.Tensor.get_device: lambda tensor: -1 if _is_on_host(tensor) else 0,
    torch.Tensor.pin_memory: lambda tensor, *args, **kwargs: tensor,
    torch.Tensor.is_pinned: lambda tensor, *args, **kwargs: False,
    torch.Tensor.record_stream: lambda tensor, stream: None,
}
