"""The GPU as an executor: the same host function on copies of its arguments in device memory."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from trivet.oracles._profile import PROFILES
from trivet.simulator._torch import torch
from trivet.simulator.executors import Run, normalised
from trivet.simulator.launch import route
from trivet.simulator.nested import mapped
from trivet.simulator.recorder import Recorder
from trivet.simulator.storages import flat_array
from trivet.simulator.transfer import Packed, Packing, packed_view, view_of


class NoGpuError(RuntimeError):
    """There is no GPU that torch can use; the message says what torch sees."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Runs host functions on the current CUDA or ROCm device.

    ``source`` is taken for symmetry with the interpreter and not needed.
    """

    source: str = ""
    configuration: int = 0

    name = "gpu"

    def __post_init__(self) -> None:
        require_gpu()

    @property
    def profile(self) -> str:
        """The profile of this device's functions in trivet.oracles."""
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        return profile_of(getattr(device, "gcnArchName", ""), (device.major, device.minor))

    def variant(self, **options: Any) -> Self:
        """Return this executor with other options; those it cannot judge by are ignored."""
        return replace(self, **{k: v for k, v in options.items() if hasattr(self, k)})

    def run(
        self,
        kernel: Callable[..., object],
        args: Mapping[str, object],
        *,
        read_only: Collection[str] = (),
        unwritten: Collection[str] = (),
        whole_storage: Collection[str] = (),
    ) -> Run:
        """Call ``kernel(**args)`` on the device; outputs and written arguments come back here.

        Which elements are read or written is not seen.
        """
        recorder = Recorder(configuration=self.configuration)
        packing = Packing()
        parcel = packing.pack(dict(args))
        bases = [torch.from_numpy(content).cuda() for content in parcel.storages]
        moved = _moved(parcel.values, bases)
        outputs: object = None
        error: BaseException | None = None
        try:
            with route(recorder, device=False):
                outputs = kernel(**moved)
            torch.cuda.synchronize()
            packing.take_back([base.cpu().numpy() for base in bases])
            outputs = _returned(outputs, bases, packing.tensors)
        except (Exception, SystemExit) as raised:
            error = raised
        return Run(
            outputs=normalised(outputs) if error is None else (),
            launches=recorder.launches,
            error=error,
            launch_error=recorder.error,
            configurations=recorder.configurations,
        )


def require_gpu() -> None:
    """Raise NoGpuError where torch sees no GPU."""
    if torch.cuda.is_available():
        return
    built = torch.version.cuda or torch.version.hip or "for the CPU only"
    raise NoGpuError(f"no GPU: torch {torch.__version__} (built {built}) sees no device")


def profile_of(architecture: str, capability: tuple[int, int]) -> str:
    """Return the profile of an AMD architecture or a CUDA capability; "gpu" for others."""
    major, minor = capability
    name = architecture.partition(":")[0] or f"sm_{major}{minor}"
    return name if name in PROFILES else "gpu"


def _moved(values: Any, bases: list[torch.Tensor]) -> Any:
    return mapped(lambda v: view_of(bases[v.storage], v) if isinstance(v, Packed) else v, values)


def _returned(outputs: Any, bases: list[torch.Tensor], here: list[torch.Tensor]) -> Any:
    """Bring outputs back; one that lies in an argument's storage is a view of the argument's."""
    homes = {
        base.untyped_storage()._cdata: tensor for base, tensor in zip(bases, here, strict=True)
    }

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        address = value.untyped_storage()._cdata
        if address not in homes:
            homes[address] = _copied(value)
        return view_of(homes[address], packed_view(value))

    return mapped(one, outputs)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's whole storage on the CPU."""
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    whole.set_(tensor.untyped_storage())
    home = torch.empty(whole.numel(), dtype=torch.uint8)
    flat_array(home, np.dtype(np.uint8))[...] = whole.cpu().numpy()
    return home
