"""What a kernel prints, raises and is called: told once, with its line, with its file."""

import os
from pathlib import Path

import pytest

from trivet.ci.captured import captured, with_output
from trivet.ci.errors import CannotJudgeError
from trivet.ci.gate import told_apart
from trivet.ci.pool import Note, run_jobs
from trivet.ci.verdicts import Store
from trivet.properties._collect import find
from trivet.properties._place import place_of

CASE = """
from trivet import Contract, Tensor

same = Contract(kernel=lambda x: x, oracles=[lambda x: x], dims={"N": 2}, args={"x": Tensor("N")})
"""


def test_what_is_printed_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    with captured() as printed:
        os.write(1, b"out\n")
        os.write(2, b"error\n")
    os.write(1, b"afterwards\n")

    assert printed() == "out\nerror\n"
    assert capfd.readouterr().out == "afterwards\n"


def test_the_first_failure_has_each_line_once() -> None:
    gates = [{"failure": None}, {"failure": {"text": "broken"}}, {"failure": {"text": "too"}}]
    told = with_output(gates, "same\nsame\n\x1b[31mred\n" + "\n".join(map(str, range(20))))

    assert told[0] is gates[0]
    assert told[2] is gates[2]
    text = told[1]["failure"]["text"].splitlines()
    assert text[:4] == ["broken", "  printed meanwhile:", "    same", "    ·[31mred"]
    assert text[-1] == "    and 12 other lines"
    assert with_output(gates, "\n") == gates


def test_an_exception_has_the_line_of_the_user() -> None:
    with pytest.raises(ValueError, match="no_such_name") as caught:
        find(["no_such_name"])

    assert "test_captured.py" in place_of(caught.value)
    assert 'find(["no_such_name"])' in place_of(caught.value)
    assert place_of(None) == ""


def test_contracts_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text(CASE)
    (tmp_path / "two.py").write_text(CASE + "other = same\n")
    found = told_apart(find(["one.py", "two.py"]))

    assert [item.name for item in found] == ["same (one.py)", "same (two.py)", "other"]


def interrupting(job: int, note: Note) -> int:
    raise KeyboardInterrupt


def test_a_kernel_that_raises_keyboard_interrupt_fails_alone() -> None:
    [event] = run_jobs(interrupting, [1], 1, "fork")

    assert (event.kind, event.value) == (
        "failed",
        "KeyboardInterrupt was raised, and nobody pressed Ctrl-C",
    )


def test_a_store_that_cannot_be_written_says_so() -> None:
    with pytest.raises(CannotJudgeError, match=r"/dev/null/x.*TRIVET_CACHE"):
        Store(Path("/dev/null/x/verdicts.sqlite"))
