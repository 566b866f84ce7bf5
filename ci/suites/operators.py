"""Operators of other projects as contracts, for gates, and for mutants of kernels not ours.

Each launches unmodified kernels of its project; ``module`` is where their text is, to be edited.
"""

import importlib
import sys
import warnings
from dataclasses import dataclass

from trivet import Contract
from trivet.ci.suites.projects import FLA_KERNELS, LIGER_KERNELS, Project

_HOMES = {"liger": (LIGER_KERNELS, "liger_operators"), "fla": (FLA_KERNELS, "fla_operators")}
# Where an operator's kernels are, if not in the module named like it.
_LIGER_MODULES = "liger_kernel.ops"
_FLA_MODULES = {
    "linear_attn_chunk": "fla.ops.common.chunk_h",
    "linear_attn_recurrent": "fla.ops.common.fused_recurrent",
    "simple_gla_chunk": "fla.ops.common.chunk_o",
    "simple_gla_recurrent": "fla.ops.common.fused_recurrent",
    "gla_recurrent": "fla.ops.common.fused_recurrent",
    "retention_chunk": "fla.ops.simple_gla.chunk",
    "gla_chunk": "fla.ops.gla.chunk",
    "retention_recurrent": "fla.ops.common.fused_recurrent",
    "hgrn_chunk": "fla.ops.hgrn.chunk",
    "hgrn_recurrent": "fla.ops.hgrn.fused_recurrent",
    "rwkv6_recurrent": "fla.ops.rwkv6.fused_recurrent",
    "delta_rule_recurrent": "fla.ops.delta_rule.fused_recurrent",
    "attention_parallel": "fla.ops.attn.parallel",
    "l2norm": "fla.modules.l2norm",
}


@dataclass(frozen=True)
class Operator:
    """One operator: its name ("liger.softmax"), its contract, the module of its kernels."""

    name: str
    contract: Contract
    module: str


def operators(project: str) -> list[Operator]:
    """Return the operators of ``project``, "liger" or "fla", fetched at the first call.

    Raises UnavailableError where it cannot be had.
    """
    source, home = _HOMES[project]
    source.fetch()
    put_on_path(source)
    with warnings.catch_warnings():
        # Both projects warn of the device that is missing, and of what they will drop one day.
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"trivet.ci.suites.{home}")
    found = {name: value for name, value in vars(module).items() if isinstance(value, Contract)}
    return [
        Operator(f"{project}.{name}", contract, _module_of(project, name))
        for name, contract in found.items()
    ]


def put_on_path(project: Project) -> None:
    """Let the project's packages be imported, after everything that is there already."""
    if str(project.packages) not in sys.path:
        sys.path.append(str(project.packages))


def _module_of(project: str, name: str) -> str:
    return f"{_LIGER_MODULES}.{name}" if project == "liger" else _FLA_MODULES[name]
