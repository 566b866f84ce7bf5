"""The printed speed of the backtest beside the plain simulator."""

import json

import pytest

from trivet.ci import backtest_speed
from trivet.ci.backtest_speed import main

FEW = ["--simulations", "40", "--events", "6", "--plain", "3"]


def test_speeds_are_printed_side_by_side(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*FEW, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["simulations"], printed["events"], printed["plain_simulations"]) == (40, 6, 3)
    assert printed["kernel"] > 0
    assert printed["plain"] > 0
    monkeypatch.setattr(backtest_speed, "measured", lambda *_: printed)
    assert main(FEW) == 0
    assert "kernel over plain" in capsys.readouterr().out


def test_a_result_that_differs_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    right = backtest_speed._plainly

    def wrong(*given: object) -> dict[str, object]:
        state = right(*given)  # type: ignore[arg-type]
        return state | {"counts": state["counts"] + 1}

    monkeypatch.setattr(backtest_speed, "_plainly", wrong)
    with pytest.raises(ValueError, match="counts of the kernel is not that of the plain simulator"):
        main(FEW)
