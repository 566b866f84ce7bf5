"""Cases of exact sums that lie halfway between two values of a narrow result.

There the least error before the result is stored moves it to the wrong side: a factor 1 + 1e-5
shows in bfloat16, which hides it elsewhere.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from trivet.oracles._evaluate import Value
from trivet.oracles._formats import format_of, round_to
from trivet.properties._case import Case
from trivet.properties._cases import build
from trivet.properties._contract import Contract
from trivet.properties._dims import closest, extent
from trivet.properties._dtypes import DTYPES
from trivet.properties._edges import affordable
from trivet.properties._observe import known_arrays
from trivet.properties._plan import plan
from trivet.properties._power import stored_dtypes
from trivet.properties._probes import EXACT_BITS, exact_case, is_floating
from trivet.properties._torch_reference import evaluate_plain

# Of a result with more bits than this no exact float32 sum of a few hundred terms is a tie.
_MOST_DIGITS = 16
_MOST_CASES = 4
_MOST_ELEMENTS = 1 << 16
# Draws of a case, of which the one with most ties is taken, and how many are enough.
_DRAWS = 24
_ENOUGH = 4
# After so many draws without a tie there is none to be expected: the outputs are no exact sums.
_HOPELESS = 4
# Far less than any error of float32, far more than one of float64.
_NUDGE = 2.0**-40


def tie_cases(
    contract: Contract, dtype: str, *, seed: int, blocks: Sequence[int]
) -> Iterator[Case]:
    """Cases of whole numbers some of whose outputs are ties, at most four; none of wide outputs.

    A tie has one significant bit more than the result holds. n terms of up to b bits, signs at
    random, add up to about 2^b sqrt(n/3): b = digits + 1 - log2(n)/2 gives that bit. All sizes are
    large, for many sums, and by turns each is taken for n. Of several draws the one is taken in
    which the oracle, in float64, has most ties.
    """
    digits = _result_digits(contract, dtype)
    if digits > _MOST_DIGITS:
        return
    floats = [name for name in contract.tensors() if is_floating(contract, name, dtype)]
    largest = {name: extent(contract, name)[1] for name in contract.forms}
    dims = affordable(contract, closest(contract, largest), most=_MOST_ELEMENTS)
    counts = sorted({size for size in dims.values() if size > 1}, reverse=True)
    chosen = list(itertools.product(counts, floats))[:_MOST_CASES]
    random = Random(f"{seed}/{dtype}/ties")
    cases = plan(contract, dtype, seed=seed, blocks=blocks, count=len(chosen))
    for (terms, wide), case in zip(chosen, cases, strict=True):
        bits = max(1, digits + 1 - round(math.log2(terms) / 2))
        large = replace(case, dims=dims)
        found = exact_case(contract, dtype, large, wide, bits, random, "ties")
        best = _with_ties(contract, dtype, found, random)
        if best is not None:
            yield best


def _result_digits(contract: Contract, dtype: str) -> int:
    """The fewest significant bits of a float output, declared or as the widest argument has."""
    named = [contract.output_dtype(name, dtype) for name in contract.outputs or ()]
    named += [contract.dtype_of(name, dtype) for name in contract.written_arguments()]
    stored = [DTYPES[name] for name in named if name is not None]
    given = [contract.storage_of(name, dtype) for name in contract.tensors()]
    widest = max((kind.digits for kind in given if kind.floating), default=EXACT_BITS)
    return min((kind.digits for kind in stored if kind.floating), default=widest)


def _with_ties(contract: Contract, dtype: str, case: Case, random: Random) -> Case | None:
    """The case, drawn anew until it has enough ties of both kinds; None where none has any."""
    best, most = None, (0, 0)
    for draw in range(_DRAWS):
        seeds = {name: random.randrange(1 << 31) for name in case.recipes}
        recipes = {n: replace(recipe, seed=seeds[n]) for n, recipe in case.recipes.items()}
        drawn = replace(case, recipes=recipes)
        up, down = _ties(contract, dtype, drawn)
        if (min(up, down), up + down) > most:
            best, most = drawn, (min(up, down), up + down)
        if most[0] >= _ENOUGH or (best is None and draw >= _HOPELESS):
            break
    return best


def _ties(contract: Contract, dtype: str, case: Case) -> tuple[int, int]:
    """How many outputs the least increase moves to another stored value, and the least decrease."""
    inputs = build(contract, case, dtype)
    try:
        outputs = evaluate_plain(contract.oracles[0], known_arrays(inputs))
    except Exception:  # of the reference: the laws discard such inputs and say so
        return 0, 0
    values = [None if output is None else _value(output) for output in outputs]
    up = down = 0
    for value, stored in zip(values, stored_dtypes(contract, dtype, inputs, values), strict=True):
        if value is None or value.error is None or not DTYPES[stored].floating:
            continue
        format = format_of(stored)
        kept = round_to(value.value, format)
        up += int((round_to(value.value * (1 + _NUDGE), format) != kept).sum())
        down += int((round_to(value.value * (1 - _NUDGE), format) != kept).sum())
    return up, down


def _value(output: object) -> Value:
    array = np.asarray(output)
    error = np.zeros(array.shape) if array.dtype.kind == "f" else None
    return Value(array, error, lambda index: "")
