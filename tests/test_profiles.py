"""The counts in verdicts are what the profile demands, for every contract of routing and cfc."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any, NamedTuple

import pytest

from trivet.properties._collect import find
from trivet.properties._contract import Contract
from trivet.properties._dims import extent
from trivet.properties._judges import Judges
from trivet.properties._profiles import PROFILES, profile_of

NAMES = ("routing*", "cfc*")
SIZE_CLASSES = 5
# Laws that always apply run on their whole share; the others skip examples that tell nothing.
ALWAYS = ("repeats", "ignores_masked_lanes")


class Entry(NamedTuple):
    """A gate of the machine output, and the contract it judged."""

    contract: Contract
    name: str
    gate: dict[str, Any]

    @property
    def kind(self):
        return laws_of(self.contract)[self.gate["law"]].kind

    @property
    def share(self):
        return laws_of(self.contract)[self.gate["law"]].share


@cache
def laws_of(contract):
    return Judges(contract, "simulator").laws


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """One run of the gates at the quick profile, for all tests here."""
    path = tmp_path_factory.mktemp("gates") / "gate.json"
    command = [sys.executable, "-m", "trivet.ci.main", "gate", *NAMES, "--json", str(path)]
    done = subprocess.run(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert path.exists(), done.stderr
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def judged(document):
    """Every gate that is promised, and that the simulator can judge."""
    contracts = {found.name: found.contract for found in find(NAMES)}
    return [
        Entry(contracts[contract["name"]], contract["name"], gate)
        for contract in document["contracts"]
        for gate in contract["gates"]
        if gate["verdict"] not in ("not_promised", "elsewhere")
    ]


def failing(entries, holds):
    """The gates that do not hold, as people read them."""
    return [f"{e.name} {e.gate['law']}: {e.gate}" for e in entries if not holds(e)]


def test_every_gate_is_green(document, judged):
    assert document["environment"]["profile"] == "quick"
    assert {e.name for e in judged} == {found.name for found in find(NAMES)}
    assert not failing(judged, lambda e: e.gate["verdict"] == "green")


def test_observing_laws_judge_every_example(judged):
    wanted = profile_of("quick").examples
    entries = [e for e in judged if e.kind in ("observes", "counts")]
    assert entries
    assert not failing(entries, lambda e: e.gate["examples"] >= wanted)


def test_reruns_take_their_stated_share(judged):
    wanted = profile_of("quick").examples
    entries = [e for e in judged if e.kind == "reruns"]
    assert not failing(entries, lambda e: 1 <= e.gate["examples"] <= wanted * e.share)
    always = [e for e in entries if e.gate["law"] in ALWAYS]
    assert always
    assert not failing(always, lambda e: e.gate["examples"] == wanted * e.share)


def test_laws_with_inputs_of_their_own_judge_some(judged):
    entries = [e for e in judged if e.kind == "observes_cases"]
    assert entries
    assert not failing(entries, lambda e: e.gate["examples"] + e.gate["rejected"] > 0)


def test_every_named_bad_input_is_tried(judged):
    entries = [e for e in judged if e.kind == "refuses"]
    assert {e.name for e in entries} == {f.name for f in find(NAMES) if f.contract.raises}
    assert not failing(entries, lambda e: e.gate["examples"] == len(e.contract.raises))


def test_each_dim_shows_its_size_classes(judged):
    entries = [e for e in judged if e.kind in ("observes", "counts")]

    def enough(entry):
        seen = entry.gate["size_classes"]
        ends = {dim: extent(entry.contract, dim) for dim in entry.contract.forms}
        wanted = {dim: min(SIZE_CLASSES, high - low + 1) for dim, (low, high) in ends.items()}
        return all(seen[dim] >= least for dim, least in wanted.items())

    assert not failing(entries, enough)


def test_elements_and_launches_are_counted(judged):
    entries = [e for e in judged if e.kind != "refuses"]
    assert not failing(entries, lambda e: e.gate["elements"] > 0 and e.gate["launches"] > 0)


def test_nothing_is_discarded_and_little_is_undecided(judged):
    """Shipped contracts stay under 0.1 % undecidable elements."""
    assert not failing(judged, lambda e: e.gate["discarded"] == 0)
    assert not failing(judged, lambda e: 1000 * e.gate["undecided"] <= e.gate["elements"])


def test_the_profiles_grow():
    assert [profile.examples for profile in PROFILES.values()] == [20, 100, 1000]
    assert all(profile.planned == 20 for profile in PROFILES.values())
    with pytest.raises(ValueError, match="profile 'fast': expected one of quick, ci, deep"):
        profile_of("fast")
