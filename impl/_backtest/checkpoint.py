"""What a run keeps on disk while it goes, so that it can be killed at any time and go on.

A folder beside the result: the key of what is run, a lock, and the state of each block of
variants. Every file appears whole, by renaming.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from trivet.impl import _replay
from trivet.impl._whole import written
from trivet.impl.sampling import Sampler

_SAMPLED = ("counts", "moments", "bins")


class CheckpointError(ValueError):
    """A folder of checkpoints that cannot be used; the text says what to do."""


def key_of(settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """A digest of all that decides a result: what is run, and the code that runs it."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    root = Path(_replay.__file__).parent.parent
    for source in sorted(root.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class Checkpoints:
    """The folder of one result; a context that holds its lock."""

    def __init__(self, output: Path, key: str, restart: bool = False) -> None:
        self.folder = output.with_name(f"{output.name}.partial")
        self.key, self.restart = key, restart

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        self._lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._claim()
        except OSError:
            self._lock.close()
            raise CheckpointError(f"{self.folder}: another run is writing there") from None
        except CheckpointError:
            self._lock.close()
            raise
        return self

    def _claim(self) -> None:
        place = self.folder / "key"
        if self.restart:
            for old in [place, *self._blocks()]:
                old.unlink(missing_ok=True)
        if not place.exists():
            written(place, lambda file: file.write(self.key.encode()))
        elif place.read_text() != self.key:
            raise CheckpointError(
                f"{self.folder}: is of a run of another configuration, other events or other "
                "code: start it again with --restart, or choose another --output"
            )

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Remove the folder where the result is written, or nothing was computed at all."""
        if error is None or not self._blocks():
            shutil.rmtree(self.folder)
        self._lock.close()

    def _blocks(self) -> list[Path]:
        return list(self.folder.glob("block-*.npz"))

    def save(
        self, block: int, done: int, state: _replay.State, sampler: Sampler | None = None
    ) -> None:
        """Keep a block's state after `done` events."""
        arrays = {name: getattr(state, name).cpu().numpy() for name in _replay.SHAPES}
        if sampler is not None and sampler.counts is not None:
            for name in _SAMPLED:
                arrays[f"sampler_{name}"] = getattr(sampler, name).cpu().numpy()
        written(
            self._place(block),
            lambda file: np.savez(file, allow_pickle=False, done=np.int64(done), **arrays),
        )

    def load(self, block: int, device: str) -> tuple[int, _replay.State, dict[str, Any]] | None:
        """How many events are done, the state then, and the sampler's tensors; None before any."""
        if not self._place(block).exists():
            return None
        with np.load(self._place(block)) as kept:
            tensors = {name: torch.from_numpy(kept[name]).to(device) for name in kept.files}
        done = int(tensors.pop("done"))
        sampled = {
            name: tensors.pop(f"sampler_{name}")
            for name in _SAMPLED
            if f"sampler_{name}" in tensors
        }
        return done, _replay.State(**tensors), sampled

    def _place(self, block: int) -> Path:
        return self.folder / f"block-{block:06}.npz"
