"""Planting the shipped faults: a family's faults are known once its module here is imported."""

import importlib.util
from collections.abc import Sequence

from trivet.properties._collect import Found


def plant_faults(found: Sequence[Found]) -> None:
    """Import ``trivet.faults.<stem>`` of every shipped contract among ``found``."""
    for stem in dict.fromkeys(f.name.partition(".")[0] for f in found if f.source == f.name):
        name = f"trivet.faults.{stem}"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
