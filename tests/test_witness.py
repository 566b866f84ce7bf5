"""Witnesses: what is saved comes back to the bit, with its layout; bad files say what is wrong."""

import json
import os
from pathlib import Path

import pytest
import torch

from trivet.properties._witness import Witness, load, packed, save, unpacked


def witness(**changes):
    fields = {
        "contract": "softmax",
        "source": "case.py:softmax",
        "law": "repeats",
        "dtype": "float32",
        "seed": 3,
        "configuration": 4,
        "dims": {"N": 2},
        "args": packed({"x": torch.tensor([1.0, float("nan")]), "scale": 0.5}),
        "text": "x[0] = 1",
    }
    return Witness(**{**fields, **changes})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path))
    return tmp_path


def back(**arguments):
    """The arguments once through JSON."""
    return unpacked(json.loads(json.dumps(packed(arguments))))


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e-40, 0.1]
WIDE = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", WIDE)
def test_floats_come_back_to_the_bit(dtype):
    x = torch.tensor(FLOATS).to(getattr(torch, dtype))
    found = back(x=x)["x"]
    assert found.dtype is x.dtype
    assert bits(found) == bits(x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_integers_and_booleans_come_back(dtype):
    x = torch.tensor([0, 1, 100]).to(getattr(torch, dtype))
    found = back(x=x)["x"]
    assert found.dtype is x.dtype
    assert found.tolist() == x.tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda flat: flat.as_strided((3, 4), (1, 3), 5),
        lambda flat: flat.as_strided((3, 4), (8, 2), 1),
        lambda flat: flat.as_strided((3, 4), (0, 1), 2),
        lambda flat: flat.as_strided((3, 4), (0, 0), 7),
        lambda flat: flat.as_strided((), (), 9),
        lambda flat: flat.as_strided((0, 4), (4, 1), 3),
        lambda flat: flat.as_strided((4, 0), (1, 1), 0),
    ],
    ids=["columns", "sliced", "expanded", "one_element", "scalar", "no_rows", "no_columns"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layouts_come_back(view, dtype):
    x = view(torch.arange(40.0).to(dtype))
    found = back(x=x)["x"]
    assert (found.shape, found.stride(), found.storage_offset()) == (
        x.shape,
        x.stride(),
        x.storage_offset(),
    )
    assert found.tolist() == x.tolist()
    assert found.untyped_storage().nbytes() == x.untyped_storage().nbytes()


def test_what_lies_outside_the_view_is_poison():
    x = torch.zeros(6)[::2]
    found = back(x=x)["x"]
    around = torch.as_strided(found, (6,), (1,), 0)
    assert around[1::2].isnan().all()
    assert found.tolist() == [0, 0, 0]


def test_shared_storage_stays_shared():
    whole = torch.arange(6.0)
    found = back(x=whole[:3], y=whole[3:], same=whole[:3], apart=torch.arange(6.0))
    found["x"][0] = 9
    assert found["same"][0] == 9
    assert found["y"].tolist() == [3, 4, 5]
    storages = {n: t.untyped_storage().data_ptr() for n, t in found.items()}
    assert storages["x"] == storages["y"] == storages["same"] != storages["apart"]


def test_empty_tensors_share_nothing():
    found = packed({"x": torch.empty(0), "y": torch.empty(0, 3)})
    assert found["x"]["storage"] != found["y"]["storage"]


def test_scalars_and_none_come_back():
    values = {"a": 3, "b": 0.1, "c": None, "d": True, "e": "relu", "f": float("inf")}
    found = back(**values)
    assert found == values
    assert [type(v) for v in found.values()] == [type(v) for v in values.values()]


def test_what_json_cannot_carry_is_saved_by_how_it_prints():
    assert packed({"kind": torch.float16, "pair": (1, 2)}) == {
        "kind": {"repr": "torch.float16"},
        "pair": {"repr": "(1, 2)"},
    }


def test_a_witness_is_saved_and_loaded(cache):
    saved = witness()
    path = save(saved)
    assert path == cache / "witnesses" / "softmax-repeats-float32.json"
    assert json.loads(path.read_text())["version"] == 1
    assert load(path) == saved
    assert set(json.loads(path.read_text())["args"]["x"]) == {
        *("shape", "strides", "offset", "dtype", "hex values", "storage", "storage bytes")
    }


def test_the_name_of_a_file_holds_nothing_of_paths():
    assert save(witness(contract="a/b c")).name == "a_b_c-repeats-float32.json"


def test_further_bugs_of_a_law_have_files_of_their_own():
    assert save(witness(), 2).name == "softmax-repeats-float32-2.json"


def test_contracts_of_one_name_do_not_overwrite_each_other():
    first, second = save(witness()), save(witness(source="other.py:softmax"))
    assert first != second
    assert load(first).source == "case.py:softmax"
    assert save(witness(source="other.py:softmax")) == second
    assert save(witness(text="anew")) == first


def test_a_write_that_fails_leaves_the_old_witness(cache, monkeypatch):
    path = save(witness())

    def interrupted(*names):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", interrupted)
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(OSError, match="disk full"):
        save(witness(text="new"))
    assert load(path).text == "x[0] = 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "witness w.json: cannot be read: Expecting property name"),
        ("[]", "witness w.json: expected version 1, found no version"),
        ("{}", "witness w.json: expected version 1, found None"),
        ('{"version": 2}', "witness w.json: expected version 1, found 2"),
        ('{"version": 1}', "witness w.json: lacks contract, source, law, dtype, seed, "),
    ],
)
def test_bad_files_are_named(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    Path("w.json").write_text(content)
    with pytest.raises(ValueError, match=r"w\.json") as found:
        load("w.json")
    assert str(found.value).startswith(message)


def test_a_missing_file_is_named():
    with pytest.raises(ValueError, match=r"witness gone\.json: cannot be read: .*No such file"):
        load("gone.json")


def test_a_field_of_another_type_is_named(tmp_path):
    path = save(witness())
    path.write_text(json.dumps({**json.loads(path.read_text()), "args": []}))
    with pytest.raises(ValueError, match="args is no dict"):
        load(path)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"dtype": "float33"}, "AttributeError"),
        ({"hex values": "zz"}, "ValueError"),
        ({"hex values": "0000"}, "ValueError"),
        ({"hex values": ""}, "ValueError"),
        ({"shape": [5]}, "RuntimeError"),
        ({"strides": [1, 1]}, "ValueError"),
        ({"offset": None}, "TypeError"),
    ],
)
def test_arguments_that_cannot_be_rebuilt_are_named(change, cause):
    good = packed({"y": torch.ones(2), "x": torch.ones(2)})
    with pytest.raises(ValueError, match=f"^argument x: cannot be rebuilt: {cause}: "):
        unpacked({**good, "x": {**good["x"], **change}})


def test_a_missing_part_of_an_argument_is_named():
    with pytest.raises(ValueError, match=r"^argument x: cannot be rebuilt: KeyError: 'value'$"):
        unpacked({"x": {}})
