"""The configuration of a run or sweep: base and overrides resolved into values by variant."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trivet.impl import _replay, policy
from trivet.impl._backtest.files import read_csv, read_parquet
from trivet.impl._backtest.synthetic import HORIZONS, REGIMES, synthetic
from trivet.impl._backtest.tape import Tape
from trivet.impl._backtest.tree import Bounds, ConfigError, Item, read_tree

INFINITE = float("inf")
LARGEST = 2**63 - 1
MOST_VARIANTS = 1 << 20
SETTINGS = {
    "threshold": Bounds(0, 1),
    "cost": Bounds(1e-3, 1e9),
    "delta_floor": Bounds(0, 1e9),
    "stop_multiple": Bounds(0, INFINITE, above=True),
    "horizon_floor": Bounds(0, 1),
    "conviction_floor": Bounds(0, 1),
    "trade_floor": Bounds(0, 1),
    "max_lots": Bounds(1, 1 << 20, whole=True),
    "latency_ns": Bounds(0, 1 << 61, whole=True),
    "max_hold_ns": Bounds(1, LARGEST, whole=True),
}
_POLICY = "policy"
_SLOTS = Bounds(1, 64, whole=True)
_STRIDE = Bounds(1, LARGEST, whole=True)
_SEED = Bounds(0, LARGEST, whole=True)
_EVENTS = Bounds(1, 10**9, whole=True)
_HORIZON = Bounds(1, 10**9, whole=True)
_MOST_HORIZONS = 128
_FILES = {"csv": read_csv, "parquet": read_parquet}
_FEW_SLOTS = 4
# A setting is a number, a policy text.
Given = Mapping[str, Any]


@dataclass(frozen=True)
class Config:
    """A valid configuration.

    names (S,) of the variants; values by setting, one number for each variant; texts are the
    distinct policy programs with their places in the file, values["program"] indexes them.
    """

    path: Path
    data: dict[str, Item]
    names: list[str]
    values: dict[str, list[float]]
    texts: dict[str, Item]
    slots: int
    stride: int | None

    def tape(self) -> Tape:
        """The events; raises ConfigError or EventsError."""
        source = self.data["source"].text()
        horizons = _horizons(self.data.get("horizons"))
        if source in _FILES:
            return _FILES[source](self.events_path(), horizons)
        return synthetic(
            self.data["regime"].choice(REGIMES),
            int(self.data["events"].number(_EVENTS)),
            int(self.data["seed"].number(_SEED)) if "seed" in self.data else 0,
            horizons or HORIZONS,
        )

    def events_path(self) -> Path:
        """The file of events, beside the configuration unless it is absolute."""
        return self.path.parent / self.data["path"].text()

    def programs(self, horizons: int) -> torch.Tensor | None:
        """The policy programs, encoded (P, L, 2) int32; None without any."""
        if not self.texts:
            return None
        parsed = []
        for text, item in self.texts.items():
            try:
                parsed.append(policy.parse(text))
                policy.verify(parsed[-1], horizons)
            except ValueError as error:
                raise item.error(f"is no valid program: {error}") from None
        return policy.encode(parsed, horizons)


def read_config(path: Path, *, alone: bool = False) -> Config:
    """Read and check a file; `alone` leaves the variants out. Raises ConfigError naming the line.

    Each variant is base with its own settings over it; what is given wins, 0 included.
    """
    whole = read_tree(path)
    sections = whole.mapping(("base", "variants", "data", "sampling"))
    if "data" not in sections:
        raise whole.error("has no section `data`: where do the events come from?")
    texts: dict[str, Item] = {}
    base: dict[str, Any] = {}
    slots = _FEW_SLOTS
    if "base" in sections:
        items = sections["base"].mapping((*SETTINGS, _POLICY, "slots"))
        if "slots" in items:
            slots = int(items.pop("slots").number(_SLOTS))
        base = _settings(items, texts)
    named = _variants(sections["variants"], texts) if "variants" in sections else [("", {})]
    resolved = [base] if alone else [{**base, **own} for _, own in named]
    names = [name or f"variant {n}" for n, (name, _) in enumerate(named)][: len(resolved)]
    used = {own[_POLICY] for own in resolved if _POLICY in own}
    texts = {text: item for text, item in texts.items() if text in used}
    return Config(
        path,
        _data(sections["data"]),
        ["variant 0"] if alone else names,
        _by_setting(resolved, list(texts)),
        texts,
        slots,
        _stride(sections.get("sampling")),
    )


def _settings(items: Mapping[str, Item], texts: dict[str, Item]) -> dict[str, Any]:
    """The values of settings; new policy programs are added to texts."""
    return {name: _setting(name, item, texts) for name, item in items.items()}


def _setting(name: str, item: Item, texts: dict[str, Item]) -> Any:
    if name != _POLICY:
        return item.number(SETTINGS[name])
    text = item.text()
    texts.setdefault(text, item)
    return text


def _variants(section: Item, texts: dict[str, Item]) -> list[tuple[str, Given]]:
    """Variants by name: a list of overrides, or lists of values whose every combination is one."""
    if section.is_mapping:
        return _combinations(section, texts)
    found: list[tuple[str, Given]] = []
    seen: set[str] = set()
    for place, item in enumerate(section.items()):
        own = item.mapping(("name", *SETTINGS, _POLICY))
        name = own.pop("name").text() if "name" in own else f"variant {place}"
        if name in seen:
            raise item.error(f"has the name {name!r} of an earlier variant")
        seen.add(name)
        found.append((name, _settings(own, texts)))
    return found


def _combinations(section: Item, texts: dict[str, Item]) -> list[tuple[str, Given]]:
    lists = {
        name: [_setting(name, each, texts) for each in item.items()]
        for name, item in section.mapping((*SETTINGS, _POLICY)).items()
    }
    count = 1
    for values in lists.values():
        count *= len(values)
    if not lists or count > MOST_VARIANTS:
        raise section.error(
            f"must give 1 to {MOST_VARIANTS} combinations, got {count * bool(lists)}"
        )
    return [
        ("", dict(zip(lists, values, strict=True))) for values in itertools.product(*lists.values())
    ]


def _by_setting(resolved: Sequence[Given], texts: list[str]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for name in SETTINGS:
        default = _replay.DEFAULTS[name][1]
        values[name] = [own.get(name, default) for own in resolved]
    places = {text: place for place, text in enumerate(texts)}
    values["program"] = [places.get(own.get(_POLICY, ""), -1) for own in resolved]
    return values


def _data(section: Item) -> dict[str, Item]:
    """The checked items of `data`."""
    keys = ("source", "regime", "events", "seed", "path", "horizons")
    given = section.mapping(keys)
    if "source" not in given:
        raise section.error("has no `source`: synthetic, csv or parquet")
    source = given["source"].choice(("synthetic", *_FILES))
    needed = ("path",) if source in _FILES else ("regime", "events")
    for name in needed:
        if name not in given:
            raise section.error(f"has no `{name}`, which source {source} needs")
    allowed = {"source", "horizons", *needed} | ({"seed"} if "regime" in needed else set())
    for name in given.keys() - allowed:
        raise given[name].error(f"has no meaning for source {source}")
    checks = {"events": _EVENTS, "seed": _SEED}
    for name in given.keys() & checks.keys():
        given[name].number(checks[name])
    if "regime" in given:
        given["regime"].choice(REGIMES)
    _horizons(given.get("horizons"))
    return given


def _horizons(item: Item | None) -> tuple[int, ...] | None:
    if item is None:
        return None
    found = tuple(int(each.number(_HORIZON)) for each in item.items())
    if len(set(found)) < len(found) or len(found) > _MOST_HORIZONS:
        raise item.error(f"must be 1 to {_MOST_HORIZONS} different numbers of events")
    return found


def _stride(section: Item | None) -> int | None:
    if section is None:
        return None
    given = section.mapping(("stride",))
    return int(given["stride"].number(_STRIDE)) if "stride" in given else None


__all__ = ["Config", "ConfigError", "read_config"]
