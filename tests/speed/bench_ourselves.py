"""How fast trivet itself is: `make bench` (not collected by `make test`).

Nothing is asserted about seconds: they depend on the machine. What is done is: every run judges.
"""

import os
import subprocess
import sys

import pytest

from trivet.ci.audit import collect_with_faults
from trivet.ci.gate import Settings
from trivet.ci.mutants import Part, judge_mutants
from trivet.ci.progress import Progress
from trivet.properties._collect import shipped
from trivet.properties._engine import judge

CONTRACTS = {found.name: found for found in shipped()}
# The first contract of every family.
FAMILIES = {name.partition(".")[0]: name for name in reversed(CONTRACTS)}
COLD = "routing.tau_sort"
MUTATED, SAMPLE = "routing.tau_clamp", 6


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_examples_of_a_family(benchmark, family):
    benchmark.group = "examples"
    found = CONTRACTS[FAMILIES[family]]
    kept = []

    def run():
        dtypes = found.contract.dtypes()[:1]
        kept.append(judge(found.contract, name=found.name, dtypes=dtypes, source=found.source))

    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    examples = max(verdict.examples for verdict in kept[-1])
    benchmark.extra_info |= {
        "contract": found.name,
        "laws": len(kept[-1]),
        "examples_per_second": round(examples / benchmark.stats.stats.median, 2),
    }
    assert examples > 0


def test_mutants(benchmark, tmp_path, monkeypatch):
    benchmark.group = "mutants"
    found = collect_with_faults([MUTATED])
    counts = []

    def fresh():
        monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / str(len(counts))))
        settings, part = Settings(workers=1), Part(sample=SAMPLE)
        return (found, [MUTATED], settings, Progress()), {
            "part": part,
            "collect": collect_with_faults,
        }

    def run(*given, **options):
        counts.append(len(judge_mutants(*given, **options).entries))

    benchmark.pedantic(run, setup=fresh, rounds=2)
    benchmark.extra_info |= {
        "mutants": counts[-1],
        "mutants_per_second": round(counts[-1] / benchmark.stats.stats.median, 2),
    }
    assert counts[-1] > 0


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_start_of_a_gate(benchmark, tmp_path, cache):
    benchmark.group = "start"
    rounds = iter(range(100))

    def folder():
        name = "same" if cache == "warm" else str(next(rounds))
        return (str(tmp_path / name),), {}

    def run(place):
        _run("-m", "trivet.ci.main", "gate", COLD, "--workers", "1", TRIVET_CACHE=place)

    benchmark.pedantic(run, setup=folder, rounds=3, warmup_rounds=int(cache == "warm"))


@pytest.mark.parametrize("module", ["trivet", "trivet.ci.plugin", "trivet.ci.main"])
def test_import(benchmark, module):
    benchmark.group = "import"
    benchmark.pedantic(_run, args=("-c", f"import {module}"), rounds=5, warmup_rounds=1)


def _run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
