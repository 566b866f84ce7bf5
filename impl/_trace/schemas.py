"""What the records of a kernel mean, and the JSON line of one record."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trivet.impl.trace.layout import HORIZONS_EACH, INPUT, OUTPUT, STATE, TYPES

_FIRST_AT = 2 * HORIZONS_EACH


@dataclass(frozen=True)
class Schema:
    """The records of one kernel that `trace.ring.write_horizons` wrote.

    fields: by record type, the names of values and more (or of values alone); horizons N.
    """

    kid: int
    kname: str
    fields: Mapping[int, tuple[str, ...]]
    horizons: int

    def payload(self, record_type: int, values: Sequence[float]) -> dict[str, float] | None:
        """The fields of 13 values, like J_0 to J_4; None where this kernel writes no such."""
        names = self.fields.get(record_type)
        first = values[_FIRST_AT]
        if names is None or first not in range(0, self.horizons, HORIZONS_EACH):
            return None
        start = int(first)
        many = min(HORIZONS_EACH, self.horizons - start)
        return {
            f"{name}_{start + k}": values[place * HORIZONS_EACH + k]
            for place, name in enumerate(names)
            for k in range(many)
        }

    @classmethod
    def by_id(cls, schemas: Sequence[Self]) -> dict[int, Self]:
        """Schemas by kernel id; ValueError where two share one."""
        found: dict[int, Self] = {}
        for schema in schemas:
            if schema.kid in found:
                names = f"{found[schema.kid].kname} and {schema.kname}"
                raise ValueError(f"kernel id {schema.kid} must be of one kernel, got {names}")
            found[schema.kid] = schema
        return found


def smoothness_lambda(horizons: int) -> Schema:
    """The records of the smoothness weight: jitter of the step; J and goal; excess and lambda."""
    fields = {INPUT: ("jitter",), STATE: ("J", "goal"), OUTPUT: ("excess", "lambda")}
    return Schema(1, "smoothness_lambda", fields, horizons)


def line_of(record: np.void, schemas: Mapping[int, Schema]) -> bytes:
    """The line of one record (`trace.RECORD`); an unknown kernel or type keeps f0 to f12."""
    kid, kind = int(record["kid"]), int(record["rt"])
    values = record["payload"].tolist()
    schema = schemas.get(kid)
    payload = schema.payload(kind, values) if schema else None
    if payload is None:
        payload = {f"f{place}": value for place, value in enumerate(values)}
    document: dict[str, Any] = {
        "step": int(record["step"]),
        "kid": kid,
        "kname": schema.kname if schema else "unknown",
        "rt": kind,
        "rt_name": TYPES[kind] if kind < len(TYPES) else "unknown",
        "payload": {name: _shown(value) for name, value in payload.items()},
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _shown(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
