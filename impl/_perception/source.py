"""Events for the perception model: seeded ones with known predictability, files, windows, labels.

Label of horizon k at event i: 1 if mid rises over the next HORIZONS_k events, 0 if it falls, 0.5 if
it is equal, NaN past the end of the file (perception.md, 8).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch

from trivet.impl._tables import Columns, EventsError, read_csv, read_parquet

HORIZONS = (30, 100, 300, 1000, 6000)
# How far a feature moves with the label it tells of, in standard deviations of its noise. One
# value of it tells the label right with probability Phi(STRENGTH).
STRENGTH = 1.0
TIME, BID, ASK, FEATURE = "ts_ns", "bid_px_x100", "ask_px_x100", "x_"
READERS = {".csv": read_csv, ".parquet": read_parquet}
_LATEST = 2**62
_DEEPEST = 2**31 - 1
_SECOND_NS = 1e9
_MEAN_GAP_NS = 100_000_000
_IDLE_FEATURES = 2


@dataclass(frozen=True)
class Events:
    """E events of one file, or a stretch of them.

    ts (E,) int64 ns; mid (E,) int64, bid + ask, in half hundredths; x (E, D) float32 features;
    name says where they are from.
    """

    name: str
    ts: np.ndarray
    mid: np.ndarray
    x: np.ndarray

    def __len__(self) -> int:
        return len(self.ts)

    def part(self, start: int, stop: int) -> Self:
        """Events start to stop - 1 as a file of their own: no window or label reaches beyond."""
        name = f"{self.name}[{start}:{stop}]"
        span = slice(start, stop)
        return type(self)(name, self.ts[span], self.mid[span], self.x[span])

    def cut(self, *shares: float) -> list[Self]:
        """Parts by time, each with its share of the events, and one with the rest."""
        if any(share <= 0 for share in shares) or sum(shares) >= 1:
            raise ValueError(f"shares must be positive and sum to less than 1, got {shares}")
        edges = [0, *(round(len(self) * share) for share in np.cumsum(shares)), len(self)]
        return [self.part(start, stop) for start, stop in itertools.pairwise(edges)]

    def labels(self, horizons: Sequence[int] = HORIZONS) -> np.ndarray:
        """The labels (E, N) float32 of every event."""
        found = np.full((len(self), len(horizons)), np.nan, np.float32)
        for k, ahead in enumerate(horizons):
            rise = np.sign(self.mid[ahead:] - self.mid[: max(len(self) - ahead, 0)])
            found[: len(rise), k] = 0.5 + 0.5 * rise
        return found


def synthetic(seed: int, events: int, horizons: Sequence[int] = HORIZONS) -> Events:
    """Draw events in which every horizon can be predicted to a known degree.

    mid is a random walk, drawn first. Feature k is STRENGTH * (2 label_k - 1) plus standard normal
    noise, so that the best guess from one value is right with probability Phi(STRENGTH); two more
    features are noise alone. Time stamps are equal now and then.
    """
    random = np.random.default_rng(seed)
    mid = 2_000_000 + np.cumsum(random.integers(-3, 4, events + max(horizons)))
    noise = random.standard_normal((events, len(horizons) + _IDLE_FEATURES))
    for k, ahead in enumerate(horizons):
        noise[:, k] += STRENGTH * np.sign(mid[ahead : ahead + events] - mid[:events])
    gaps = random.exponential(_MEAN_GAP_NS, events).astype(np.int64)
    gaps[random.random(events) < 0.02] = 0
    return Events(f"synthetic {seed}", np.cumsum(gaps), mid[:events], noise.astype(np.float32))


def read(path: Path) -> list[Events]:
    """The events of a CSV or Parquet file, or of all of a folder, in the order of their names.

    Columns are ts_ns, bid_px_x100, ask_px_x100, and a feature for each whose name begins with x_;
    others are left alone. Files of one folder must have the same features in the same order.
    Raises EventsError naming file, line or event, and field.
    """
    if not path.is_dir():
        return [_read_file(path)[0]]
    places = sorted(place for place in path.iterdir() if place.suffix in READERS)
    if not places:
        raise EventsError(f"{path}: has no file that ends in {' or '.join(READERS)}")
    found = [_read_file(place) for place in places]
    for (_, names), place in zip(found, places, strict=True):
        if names != found[0][1]:
            raise EventsError(
                f"{place}: must have the features of {places[0].name}, "
                f"{', '.join(found[0][1])}, got {', '.join(names)}"
            )
    return [events for events, _ in found]


def _read_file(path: Path) -> tuple[Events, list[str]]:
    if path.suffix not in READERS:
        raise EventsError(f"{path}: must end in {' or '.join(READERS)}")
    columns: Columns = READERS[path.suffix](path)
    features = [name for name in columns.names if name.startswith(FEATURE)]
    if not features:
        raise EventsError(f"{path}: has no feature, a column whose name begins with {FEATURE}")
    columns.require(TIME, BID, ASK, *features)
    ts = columns.times(TIME, _LATEST)
    mid = columns.whole(BID, -_DEEPEST, _DEEPEST) + columns.whole(ASK, -_DEEPEST, _DEEPEST)
    x = np.stack([columns.finite(name) for name in features], axis=1)
    return Events(str(path), ts, mid, x), features


class Batch(NamedTuple):
    """Windows: x (B, K, D), dt (B, K) seconds before each event, labels (B, K, N), float32."""

    x: torch.Tensor
    dt: torch.Tensor
    labels: torch.Tensor


class Windows:
    """Windows of K events of files, none across a boundary.

    What `batch` gives is a function of the files, K, B, seed, horizons, shuffle and the step
    alone. `shuffle` hands the labels of each file out to its events at random: what can then be
    predicted is nothing. Raises EventsError where no file has K events.
    """

    def __init__(
        self,
        files: Sequence[Events],
        K: int,
        B: int,
        seed: int = 0,
        horizons: Sequence[int] = HORIZONS,
        shuffle: bool = False,
    ) -> None:
        if min(K, B, *horizons) < 1:
            raise ValueError(f"K, B and horizons must be positive, got {K}, {B}, {horizons}")
        self.K, self.B, self.seed = K, B, seed
        self.starts = np.cumsum([0, *(max(len(events) - K + 1, 0) for events in files)])
        if not self.starts[-1]:
            longest = max((len(events) for events in files), default=0)
            raise EventsError(f"windows of {K} events need a file as long, got at most {longest}")
        self.files = list(files)
        self.labels = [events.labels(horizons) for events in files]
        if shuffle:
            for place, labels in enumerate(self.labels):
                np.random.default_rng([seed, place]).shuffle(labels)
        # No event is before a file's first: its gap is 0.
        self.gaps = [
            (np.diff(events.ts, prepend=events.ts[:1]) / _SECOND_NS).astype(np.float32)
            for events in files
        ]

    @property
    def D(self) -> int:
        """Features of an event."""
        return int(self.files[0].x.shape[1])

    @property
    def N(self) -> int:
        """Horizons."""
        return int(self.labels[0].shape[1])

    def batch(self, step: int) -> Batch:
        """The B windows of a step, from 0: anchors uniform over all that there are."""
        random = np.random.default_rng([self.seed, step])
        return self._at(random.integers(0, self.starts[-1], self.B))

    def tiles(self, count: int) -> Batch:
        """At most `count` windows in order of time, side by side, from each file by its length."""
        tiles = [np.arange(first, last, self.K) for first, last in itertools.pairwise(self.starts)]
        many = np.cumsum([0, *map(len, tiles)])
        shares = np.diff(many * min(count, many[-1]) // many[-1])
        kept = [tile[:share] for tile, share in zip(tiles, shares, strict=True)]
        return self._at(np.concatenate(kept))

    def _at(self, anchors: np.ndarray) -> Batch:
        """Windows by their number, counted through all files."""
        places = np.searchsorted(self.starts, anchors, side="right") - 1
        parts: list[list[np.ndarray]] = [[], [], []]
        for place, anchor in zip(places, anchors - self.starts[places], strict=True):
            span = slice(anchor, anchor + self.K)
            held = (self.files[place].x, self.gaps[place], self.labels[place])
            for part, array in zip(parts, held, strict=True):
                part.append(array[span])
        return Batch(*(torch.from_numpy(np.stack(part)) for part in parts))
