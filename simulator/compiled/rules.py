"""When a metric got worse, and what that costs: the rules of the static performance gate.

HARD metrics have a cost that no measurement is needed for: more bytes, narrower accesses, spills, a
slower unit. SOFT ones usually cost time and sometimes buy it; they need an acknowledged update.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trivet.simulator.compiled.measure import Measurement
from trivet.simulator.compiled.metrics import Value

Kind = Literal["HARD", "SOFT"]


@dataclass(frozen=True, slots=True)
class Change:
    """A metric that got worse past its tolerance.

    ``was`` and ``now`` are its values, ``line`` the source line it comes from (the kernel's own
    where no other is known), ``words`` what it costs.
    """

    metric: str
    was: Value | None
    now: Value | None
    kind: Kind
    line: str
    words: str


@dataclass(frozen=True, slots=True)
class Rule:
    """How one metric is judged.

    ``worse`` is +1 where a larger value is worse and -1 where a smaller one is; changes up to
    ``share`` of the old value, or ``slack`` of it, are none. ``both`` asks for both values to be
    there: a width is compared only where there are accesses.
    """

    metric: str
    kind: Kind
    worse: int
    words: str
    share: float = 0.0
    slack: float = 0.0
    both: bool = False

    def broken(self, was: Value, now: Value) -> bool:
        """Whether ``now`` is worse than ``was`` by more than the tolerance."""
        if isinstance(was, str) or isinstance(now, str):
            return was != now
        if self.both and not (was and now):
            return False
        return (now - was) * self.worse > max(self.share * abs(was), self.slack)


_NARROW = "the same bytes take more memory instructions and transactions"
RULES = (
    Rule("bytes_read", "HARD", 1, "more bytes come from memory in each launch"),
    Rule("bytes_written", "HARD", 1, "more bytes go to memory in each launch"),
    Rule("bytes_atomic", "HARD", 1, "more bytes are updated atomically, one program at a time"),
    Rule("load_bits", "HARD", -1, f"loads are narrower: {_NARROW}", both=True),
    Rule("store_bits", "HARD", -1, f"stores are narrower: {_NARROW}", both=True),
    Rule("async_bits", "HARD", -1, f"asynchronous copies are narrower: {_NARROW}", both=True),
    Rule("spills", "HARD", 1, "values no longer fit into registers and go through memory"),
    Rule("local_bytes", "HARD", 1, "each thread keeps values in local memory, off the chip"),
    Rule("double", "HARD", 1, "float64 arithmetic: a half to a sixty-fourth of float32's speed"),
    Rule("atomics", "HARD", 1, "atomic operations make programs wait for each other"),
    Rule("async_copies", "HARD", -1, "loads no longer overlap with work: fewer copies in flight"),
    Rule("fits", "HARD", -1, "a block needs more shared memory than there is: it cannot start"),
    Rule("matrix_rank", "HARD", -1, "products run on a slower unit, or on none"),
    Rule("registers", "SOFT", 1, "fewer warps fit beside each other", 0.10, 2),
    Rule("shared_bytes", "SOFT", 1, "fewer blocks fit beside each other", 0.10),
    Rule("occupancy", "SOFT", -1, "fewer warps are there to hide latency"),
    Rule("bytes_in_flight", "SOFT", -1, "fewer bytes are under way at a time", 0.25, both=True),
    Rule("instructions_per_kilobyte", "SOFT", 1, "more instructions for the same bytes", 0.08),
    Rule("loop_instructions", "SOFT", 1, "each turn of the innermost loop is longer", 0.08, 2),
    Rule("barriers", "SOFT", 1, "warps wait for each other more often"),
    Rule("loop_barriers", "SOFT", 1, "warps wait for each other in each turn of the loop"),
    Rule(
        "functions", "SOFT", 1, "more exponentials, divisions or roots, at a fraction of the rate"
    ),
    Rule("layout_changes", "SOFT", 1, "values change hands between threads through shared memory"),
    Rule("wide_integers", "SOFT", 1, "more 64-bit index arithmetic", 0.10, 2),
    Rule("matrix", "SOFT", 1, "more matrix instructions for the same product", 0.0),
    Rule("matrix_kind", "SOFT", 1, "products use another kind of matrix instruction"),
    Rule("shared_loads", "SOFT", 1, "more reads of shared memory", 0.10, 2),
    Rule("shared_stores", "SOFT", 1, "more writes to shared memory", 0.10, 2),
    Rule("shared_load_bits", "SOFT", -1, "reads of shared memory are narrower", 0.10, both=True),
    Rule("shared_store_bits", "SOFT", -1, "writes to shared memory are narrower", 0.10, both=True),
)


def compare(was: Mapping[str, Value], now: Measurement) -> list[Change]:
    """Return every metric that is worse in ``now`` than the values ``was``, HARD ones first.

    A metric that one of them lacks is not compared. A kernel that no longer compiles is one HARD
    change of ``compiles``; one that never did has no values.
    """
    if now.error and not was:
        return []
    if now.error:
        words = f"it no longer compiles: {now.error}"
        return [Change("compiles", 1, 0, "HARD", now.lines.get("kernel", ""), words)]
    found = []
    for rule in RULES:
        if rule.metric not in was or rule.metric not in now.metrics:
            continue
        before, after = was[rule.metric], now.metrics[rule.metric]
        if rule.broken(before, after):
            line = now.lines.get(rule.metric) or now.lines.get("kernel", "")
            found.append(Change(rule.metric, before, after, rule.kind, line, rule.words))
    return sorted(found, key=lambda change: change.kind)
