"""Survivors beside their originals once both are compiled: the same PTX is the same kernel."""

from pathlib import Path

import pytest
from tests.test_mutants import KERNEL

from trivet.faults._artifact import TARGET, bare, same_artifact
from trivet.faults._load import edited
from trivet.faults._warm import Warm
from trivet.properties._collect import find
from trivet.simulator.compiled import missing


@pytest.mark.night
@pytest.mark.skipif(bool(missing(TARGET)), reason=f"nothing compiles for {TARGET} here")
def test_the_compiler_says_which_edits_make_no_other_kernel(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text(KERNEL)
    [found] = find([str(path)])
    warm = Warm(found)
    warm.prepare()
    kernel = found.contract.kernel

    # x * 2.0 and x + x round alike, which only the compiler's back end knows of x * 1.0.
    assert same_artifact(warm, edited(kernel, "x * 2.0", "x * 2.0 * 1.0"))
    assert not same_artifact(warm, edited(kernel, "x * 2.0", "x * 3.0"))


def test_lines_and_comments_are_no_part_of_the_code() -> None:
    ptx = "// made by\n\t.loc\t1 7 3\n\tadd.f32 %f1, %f2, %f3; // why\n\t.section\t.debug_str\nx"

    assert bare(ptx) == "add.f32 %f1, %f2, %f3;"
