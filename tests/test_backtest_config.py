"""Configurations: what they resolve to, and how wrong ones are named with their line."""

import re
from pathlib import Path

import pytest

from trivet.impl._backtest.config import Config, read_config
from trivet.impl._backtest.tree import ConfigError

DATA = "data: {source: synthetic, regime: noise, events: 9}\n"


def read(folder: Path, text: str, *, alone: bool = False) -> Config:
    path = folder / "c.yaml"
    path.write_text(text)
    return read_config(path, alone=alone)


def test_base_and_overrides_are_resolved_and_a_given_zero_wins(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        DATA
        + "base: {cost: 0.5, delta_floor: 2, threshold: 0.25, latency_ns: 5}\n"
        + "variants:\n- {}\n- {name: off, delta_floor: 0, threshold: 0, latency_ns: 0}\n",
    )
    assert config.names == ["variant 0", "off"]
    assert config.values["delta_floor"] == [2, 0]
    assert config.values["threshold"] == [0.25, 0]
    assert config.values["latency_ns"] == [5, 0]
    assert config.values["cost"] == [0.5, 0.5]
    assert config.values["horizon_floor"] == [0.1, 0.1]
    assert config.values["program"] == [-1, -1]


def test_lists_give_every_combination(tmp_path: Path) -> None:
    text = DATA + "base: {cost: 9}\nvariants: {cost: [1, 2e-1], max_lots: [3, 4, 1e2]}\n"
    config = read(tmp_path, text)
    assert config.values["cost"] == [1, 1, 1, 0.2, 0.2, 0.2]
    assert config.values["max_lots"] == [3, 4, 100] * 2
    assert read(tmp_path, text, alone=True).values["cost"] == [9]


def test_numbers_are_read_as_people_write_them(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        DATA + "base: {cost: 1e-3, stop_multiple: .inf, max_hold_ns: 60_000_000_000}\n",
    )
    assert config.values["cost"] == [0.001]
    assert config.values["stop_multiple"] == [float("inf")]
    assert config.values["max_hold_ns"] == [60_000_000_000]


def test_policies_are_numbered(tmp_path: Path) -> None:
    program = "|\n    PUSH_P {}\n    WRITE_ORDER\n    HALT\n"
    config = read(
        tmp_path,
        DATA
        + "base:\n  policy: "
        + program.format(0)
        + "variants:\n- {}\n- policy: "
        + program.format(1)
        + "- cost: 2\n",
    )
    assert config.values["program"] == [0, 1, 0]
    programs = config.programs(5)
    assert programs is not None
    assert programs.shape == (2, 3, 2)
    with pytest.raises(
        ConfigError, match=r"c.yaml, line 9: variants\[1\].policy is no valid .*horizon 1 is not"
    ):
        config.programs(1)


def test_paths_are_beside_the_configuration(tmp_path: Path) -> None:
    config = read(tmp_path, "data: {source: csv, path: e.csv}\n")
    assert config.events_path() == tmp_path / "e.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml: is empty"),
        ("- 1\n", r"line 1: the file must be a mapping of base, variants, data, sampling, got a l"),
        ("base: {}\n", "line 1: the file has no section `data`"),
        ("a: [\n", r"line 2: no YAML: "),
        (DATA + "bases: {}\n", "line 2: the file has no key 'bases'; the nearest is 'base'"),
        (DATA + "base:\n  cots: 1\n", "line 3: base has no key 'cots'; the nearest is 'cost', k"),
        (DATA + "base:\n  cost: 1\n  cost: 2\n", "line 4: base has 'cost' twice"),
        (DATA + "base: 3\n", "line 2: base must be a mapping of threshold, .*, got '3'"),
        (DATA + "base: {cost: 0}\n", "base.cost must be a number from 0.001 to 1e.09, got '0'"),
        (DATA + "base: {cost: yes}\n", "base.cost must be a number from .*, got 'yes'"),
        (DATA + "base: {cost: '1'}\n", "base.cost must be a number from .*, got '1'"),
        (DATA + "base: {cost: .nan}\n", "base.cost must be a number from .*, got '.nan'"),
        (DATA + "base: {cost: }\n", "base.cost must be a number from .*, got nothing"),
        (DATA + "base: {cost: [1]}\n", "base.cost must be a number from .*, got a list"),
        (DATA + "base: {max_lots: 1.5}\n", "max_lots must be a whole number from 1 to 1048576"),
        (DATA + "base: {latency_ns: -1}\n", "latency_ns must be a whole number from 0 to"),
        (DATA + "base: {stop_multiple: 0}\n", "stop_multiple must be a number above 0, got '0'"),
        (DATA + "base: {slots: 0}\n", "base.slots must be a whole number from 1 to 64, got '0'"),
        (DATA + "variants: []\n", "line 2: variants must not be empty"),
        (DATA + "variants: {}\n", "variants must give 1 to 1048576 combinations, got 0"),
        (DATA + "variants: {cost: 1}\n", "variants.cost must be a list, got '1'"),
        (DATA + "variants:\n- {slots: 1}\n", r"line 3: variants\[0\] has no key 'slots'"),
        (DATA + "variants:\n- {cost: 1}\n- cost: -1\n", r"line 4: variants\[1\].cost must be"),
        (DATA + "variants:\n- {name: a}\n- {name: a}\n", r"line 4: variants\[1\] has the name 'a'"),
        (DATA + "sampling: {stride: 0}\n", "sampling.stride must be a whole number of at least 1"),
        ("data: {source: cvs}\n", "data.source must be one of .* got 'cvs'; the nearest is 'csv'"),
        ("data: {path: a}\n", "data has no `source`: synthetic, csv or parquet"),
        ("data: {source: csv}\n", "data has no `path`, which source csv needs"),
        ("data: {source: csv, path: a, seed: 1}\n", "data.seed has no meaning for source csv"),
        ("data: {source: synthetic, events: 1}\n", "data has no `regime`, which source syn"),
        (
            DATA.replace("noise", "nois"),
            "data.regime must be one of trending, .*nearest is 'noise'",
        ),
        (DATA.replace("9", "0"), "data.events must be a whole number from 1 to 1000000000, got"),
        (DATA.replace("}", ", horizons: [3, 3]}"), "horizons must be 1 to 128 different numbers"),
    ],
)
def test_a_wrong_configuration_is_named_with_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.yaml: cannot be read: No such file"):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match=r"c.yaml: is not UTF-8 text"):
        read_config(tmp_path / "c.yaml")


def test_the_documented_configurations_can_be_used(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    shown = re.findall(r"```yaml\n(.*?)```", (root / "docs/backtest.md").read_text(), re.DOTALL)
    assert shown[0] == (root / "examples/backtests/sweep.yaml").read_text()
    assert len(read(tmp_path, shown[0]).names) == 32
    assert read(tmp_path, DATA + shown[1]).names == ["patient", "own"]
