"""The margins of the last gates, kept beside the other caches for a case's page to show."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from trivet.simulator.cache import cache_folder, write_whole

Document = dict[str, Any]
_FILE = "margins.json"


def remember(document: Document) -> None:
    """Keep the margin of every gate of ``document`` that compared values; atomic, newest wins."""
    known = _read()
    environment = document["environment"]
    for contract in document["contracts"]:
        for gate in contract["gates"]:
            if gate["margin"] is None:
                continue
            label = f"{gate['law']}[{gate['dtype']}] on the {gate['executor']}"
            entry = {"margin": gate["margin"], "examples": gate["examples"]}
            entry["profile"] = environment["profile"]
            known.setdefault(contract["name"], {})[label] = entry
    try:
        write_whole(cache_folder() / _FILE, json.dumps(known, indent=1, sort_keys=True))
    except OSError as error:
        print(f"trivet: the margins are not kept: {error}", file=sys.stderr)


def recall(name: str) -> Iterator[str]:
    """Yield a line for each margin last measured of the contract called ``name``."""
    for label, entry in sorted(_read().get(name, {}).items()):
        yield (
            f"{label}: {entry['margin']:.3g} of the bound, "
            f"{entry['examples']} examples, profile {entry['profile']}"
        )


def _read() -> dict[str, dict[str, Mapping[str, Any]]]:
    try:
        known = json.loads((cache_folder() / _FILE).read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
