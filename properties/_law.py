"""A contract's own laws and faults: plain functions that take what they need by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

RESERVED = ("out", "ref", "bound", "kernel", "rerun", "grads", "launches", "args")
# The standard laws of every contract: the names are part of the fixed face, the laws themselves
# live in trivet.properties._laws.
STANDARD_LAWS = (
    "matches_oracle",
    "gradients_match",
    "logic_matches",
    "exact_on_integers",
    "stays_in_bounds",
    "reads_initialised",
    "writes_every_element",
    "is_race_free",
    "ignores_masked_lanes",
    "offsets_fit",
    "leaves_inputs_unchanged",
    "repeats",
    "is_deterministic",
    "ignores_layout",
    "ignores_batch",
    "ignores_block_size",
    "propagates_nonfinite",
    "handles_empty",
    "rejects_bad_input",
    "does_work",
    "compiles",
    "precision_audit",
    "perf_lock",
)


@dataclass(frozen=True, slots=True)
class Law:
    """A predicate that a kernel must keep.

    ``needs`` are the names of the arguments of ``check``: dims, arguments and reserved names.
    ``dtypes`` restricts it to some of the contract's dtypes; None is all of them.
    """

    name: str
    claim: str
    needs: tuple[str, ...]
    check: Callable[..., object]
    dtypes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A past bug: a replacement kernel, or an edit of the kernel's text.

    ``expects`` names the laws that must turn red. ``make`` is the replacement, with the kernel's
    parameters; or has the one parameter ``edit``, a function ``edit(old, new, module=None)`` that
    returns the kernel loaded from edited source, and returns what that gives.
    """

    name: str
    story: str
    expects: tuple[str, ...]
    number: int | None
    make: Callable[..., object]

    @property
    def is_edit(self) -> bool:
        """Whether it edits the kernel's text, rather than replacing the kernel."""
        return [*inspect.signature(self.make).parameters] == ["edit"]


def story_of(function: Callable[..., object]) -> str:
    """The whole docstring on one line, else the name in words."""
    return " ".join((inspect.getdoc(function) or function.__name__.replace("_", " ")).split())


def claim_of(function: Callable[..., object]) -> str:
    """The first paragraph of a docstring on one line, else the name in words."""
    text = inspect.getdoc(function) or function.__name__.replace("_", " ")
    return " ".join(text.split("\n\n")[0].split())
