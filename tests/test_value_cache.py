"""Oracle values are computed once for all laws, gates and wrong kernels of the same inputs."""

from dataclasses import replace

import pytest
import torch
from tests.tiny import contract_of, doubled

from trivet import Precision
from trivet.oracles import _cache
from trivet.properties._engine import judge


def halved(x):
    return torch.zeros_like(x) + doubled(x) / 4


@pytest.fixture
def evaluated(monkeypatch):
    """The oracles evaluated so far, one entry an evaluation; nothing is known before."""
    calls = []
    real = _cache.evaluate

    def counted(oracle, arguments, **settings):
        # A red law asks once more what giving up an approximation would admit.
        calls.extend([oracle] if settings["precision"] == Precision() else [])
        return real(oracle, arguments, **settings)

    _cache.CACHE.clear()
    monkeypatch.setattr(_cache, "evaluate", counted)
    return calls


def judged(contract, **settings):
    # As an audit judges: no certificate, which evaluates mutated plans.
    laws = ["matches_oracle", "logic_matches", "exact_on_integers"]
    return judge(contract, name="doubled", stop_when=(), laws=laws, **settings)


def test_a_second_gate_and_a_mutant_evaluate_nothing(evaluated):
    contract = contract_of(doubled)
    first = judged(contract)
    assert {verdict.state for verdict in first} == {"green"}
    shared, _, own = (verdict.examples for verdict in first)
    assert len(evaluated) == shared + own, "once an example, for all laws together"
    known = len(evaluated)
    judged(contract)
    wrong = judged(replace(contract, kernel=halved), shrink=False)
    assert "red" in {verdict.state for verdict in wrong}
    assert len(evaluated) == known


def test_other_inputs_and_another_oracle_are_evaluated(evaluated):
    contract = contract_of(doubled)
    judged(contract)
    known = len(evaluated)
    judged(contract, seed=1)
    assert len(evaluated) > known
    known = len(evaluated)
    judged(contract_of(doubled, oracle=lambda x: x + x))
    assert len(evaluated) > known
