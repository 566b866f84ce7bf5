"""What decides a run of training: what a checkpoint keeps, and a resumed run must share."""

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from trivet.impl._perception.model import Sizes
from trivet.impl._perception.moments import Rates
from trivet.impl._perception.source import HORIZONS

# Settings that may differ when a run goes on: they decide how far it goes, not how.
_FREE = ("steps",)


class SettingsError(ValueError):
    """Settings that cannot be used; the text says what to do."""


@dataclass(frozen=True)
class Settings:
    """A run: data (files, or none for the synthetic source), model, windows, rates, lengths.

    `events` synthetic events are drawn. `transition_by` is the last step of phase 1, whatever
    controller A says; 0 leaves it alone to decide. `overfit` trains on the first batch for ever,
    `shuffle` hands labels out at random.
    """

    data: tuple[str, ...] = ()
    seed: int = 0
    steps: int = 1000
    lr: float = 3e-3
    weight_decay: float = 0.0
    smoothness_base_lambda: float = 0.0
    horizons: tuple[int, ...] = HORIZONS
    channels: int = 128
    states: int = 16
    width: int = 32
    capacity: int = 28
    window: int = 64
    batch: int = 32
    epoch: int = 100
    tiles: int = 256
    events: int = 100_000
    transition_by: int = 0
    overfit: bool = False
    shuffle: bool = False

    def roomy(self) -> Self:
        """These settings with room for their channels: fewer horizons have larger buckets."""
        largest = math.ceil(self.channels / len(self.horizons))
        return replace(self, capacity=max(self.capacity, largest))

    def rates(self) -> Rates:
        """The optimiser's numbers."""
        return Rates(self.lr, self.weight_decay)

    def sizes(self, features: int) -> Sizes:
        """The model's sizes for so many input features; raises SettingsError."""
        try:
            return Sizes(
                D=features,
                H=self.channels,
                S=self.states,
                N=len(self.horizons),
                E=self.width,
                M=self.capacity,
            )
        except ValueError as error:
            raise SettingsError(str(error)) from None

    def text(self) -> str:
        """The settings as JSON, for a checkpoint."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read what `text` wrote; raises SettingsError for anything else."""
        known = {field.name for field in fields(cls)}
        try:
            found: dict[str, Any] = json.loads(text)
            found = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
        except (ValueError, AttributeError):
            raise SettingsError(f"settings must be a JSON object, got {text[:40]!r}") from None
        if set(found) != known:
            odd = sorted(set(found) ^ known)[0]
            raise SettingsError(f"settings {odd!r}: the checkpoint is of another version")
        return cls(**found)

    def check_same(self, other: Self) -> None:
        """Raise SettingsError unless a run of `other` can go on with these settings."""
        for field in fields(self):
            own, given = getattr(self, field.name), getattr(other, field.name)
            if field.name not in _FREE and own != given:
                raise SettingsError(
                    f"{field.name} must be as in the checkpoint, {given!r}, got {own!r}"
                )


PRODUCTION = Settings()
# What a CPU trains under the simulator: half a second a step.
SMALL = replace(
    PRODUCTION,
    horizons=(3, 10, 30, 100, 600),
    channels=20,
    states=4,
    width=8,
    capacity=6,
    window=8,
    batch=8,
    tiles=125,
    events=20_000,
    lr=1e-2,
)
# For trying out what a run does, in seconds.
TINY = replace(
    SMALL,
    horizons=(2, 5),
    channels=5,
    states=2,
    width=2,
    capacity=3,
    window=2,
    batch=2,
    tiles=8,
    events=400,
    steps=6,
    epoch=2,
)
SIZES = {"tiny": TINY, "small": SMALL, "production": PRODUCTION}
