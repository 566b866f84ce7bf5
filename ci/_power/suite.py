"""All workloads, with the number of cases that makes 2 * 10^5 judged results."""

from collections.abc import Callable

from trivet.ci._power.adamw import AdamW
from trivet.ci._power.cell import Cell
from trivet.ci._power.dots import Dot
from trivet.ci._power.gradients import CellGradients
from trivet.ci._power.layer_norm import LayerNorm
from trivet.ci._power.narrow import Narrow
from trivet.ci._power.scan import Scan
from trivet.ci._power.softmax import Softmax
from trivet.ci._power.workload import Workload

# By cost, so that two processes end together.
SUITE: tuple[Callable[[], Workload], ...] = (
    lambda: Softmax(1000, cases=40, batches=6),
    lambda: LayerNorm(768, cases=40, batches=6),
    lambda: Cell(16, cases=50, batches=6),
    lambda: Scan(cases=50, batches=6),
    lambda: CellGradients(cases=8, batches=3),
    lambda: Dot(4096, cases=16, batches=16),
    lambda: Dot(1024, cases=60, batches=8),
    lambda: Narrow(Softmax(1000, cases=25, batches=4)),
    lambda: Narrow(LayerNorm(768, cases=25, batches=4)),
    lambda: Narrow(Dot(1024, cases=60, batches=6)),
    lambda: Cell(4, cases=50, batches=8, exact_fresh=True),
    lambda: AdamW(cases=100, batches=8),
    lambda: Dot(64, cases=300, batches=4),
)


def workload_named(name: str) -> Workload:
    """The workload of the suite called `name`. Raises ValueError for an unknown name."""
    found = [workload for make in SUITE if (workload := make()).name == name]
    if not found:
        raise ValueError(f"no workload {name!r}; known: {', '.join(w().name for w in SUITE)}")
    return found[0]
