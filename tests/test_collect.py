"""Finding contracts by what people write: names, globs, files, folders, modules, pyproject."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trivet.properties._collect import UnknownNameError, UnreadableFileError, find, shipped

CASE = """
from trivet import Contract, Tensor, sizes

def contract():
    return Contract(lambda x: x, [lambda x: x], {"N": sizes(1, 9)}, {"x": Tensor("N")})

"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def write(path, *names, text=CASE):
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "".join(f"{name} = contract()\n" for name in names))


def pyproject(*paths):
    Path("pyproject.toml").write_text(f"[tool.trivet]\npaths = {[*paths]}\n")


def names(*asked):
    return [found.name for found in find(asked)]


def sources(*asked):
    return [found.source for found in find(asked)]


def test_shipped_contracts_are_named_by_stem_and_kernel():
    found = {f.name: f for f in shipped()}
    sort = found["routing.tau_sort"]
    assert (sort.variable, sort.source) == ("routing_tau_sort", "routing.tau_sort")
    assert all(name.count(".") == 1 for name in found)


def test_a_shipped_name_and_a_glob():
    assert names("routing.tau_sort") == ["routing.tau_sort"]
    assert names("cfc.step*") == [n for n in names("cfc*") if n.startswith("cfc.step")] != []


def test_a_shipped_name_imports_nobodys_files():
    write("broken.py", text=CASE + "raise RuntimeError\n")
    pyproject("broken.py")
    assert names("routing.tau_sort") == ["routing.tau_sort"]


def test_a_file_and_one_of_its_contracts():
    write("case.py", "first", "second", "_hidden")
    assert names("case.py") == ["first", "second"]
    assert names("case.py:second") == ["second"]
    assert names("case.py:s*") == ["second"]
    assert sources("case.py") == ["case.py:first", "case.py:second"]


def test_a_source_finds_its_contract_again():
    write("some/case.py", "first", "second")
    for found in find(["some"]):
        (again,) = find([found.source])
        assert again.contract is found.contract


def test_a_folder_is_searched_in_order():
    write("some/b.py", "late")
    write("some/a.py", "early")
    write("some/deep/c.py", "deep")
    write("some/note.py", text="raise RuntimeError\n")
    assert names("some") == ["early", "late", "deep"]


@pytest.mark.parametrize("folder", [".venv/lib", ".git", "env/lib", "__pycache__/.x"])
def test_environments_and_hidden_folders_are_none_of_ours(folder):
    write("case.py", "mine")
    write(f"{folder}/other.py", "other")
    if folder.startswith("env"):
        Path("env/pyvenv.cfg").write_text("")
    assert names(".") == ["mine"]


def test_a_module_and_its_contract(here):
    write("package_of_cases/inner.py", "first", "second")
    assert names("package_of_cases.inner:second") == ["second"]
    assert sources("package_of_cases.inner:*") == [
        "package_of_cases.inner:first",
        "package_of_cases.inner:second",
    ]


def test_a_module_is_found_from_the_present_folder_by_the_console_script(here):
    write("cases_here.py", "first", "second")
    command = Path(sys.executable).with_name("trivet")
    done = subprocess.run(
        [command, "list", "cases_here:second"],
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "second" in done.stdout
    assert "first" not in done.stdout


def test_without_names_the_shipped_and_those_of_pyproject():
    write("some/case.py", "mine")
    pyproject("some")
    known = [f.name for f in shipped()]
    assert names() == [*known, "mine"]
    assert names("mine") == ["mine"]


def test_a_glob_covers_both():
    write("case.py", "routing_of_mine", "other")
    pyproject("case.py")
    assert names("routing*") == [n for n in names() if n.startswith("routing")]
    assert names("routing*")[-1] == "routing_of_mine"


def test_each_contract_comes_once(here):
    write("case.py", "first", "second")
    asked = ["case.py:second", "case.py", str(here / "case.py"), "."]
    assert names(*asked) == ["second", "first"]
    assert names("routing.tau_sort", "routing.tau*").count("routing.tau_sort") == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("sofmax", "sofmax: no contract has this name; did you mean softmax?"),
        ("case.py:softmix", "case.py:softmix: no contract has this name; did you mean softmax?"),
        ("routing.tausort", "routing.tausort: no contract has this name; did you mean routing."),
        ("gone.py", "gone.py: no such file or folder"),
        ("gone.py:softmax", "gone.py: no such file or folder"),
        ("plain.py", "plain.py: holds no Contract"),
        ("empty", "empty: holds no Contract"),
        ("no_such_module:x", "no_such_module: cannot be imported: No module named"),
        (":x", ": cannot be imported: Empty module name"),
        ("json:x", "json:x: no contract has this name"),
    ],
)
def test_unknown_names(asked, message):
    write("case.py", "softmax")
    write("plain.py", text="x = 1\n")
    Path("empty").mkdir()
    pyproject("case.py")
    with pytest.raises(UnknownNameError) as found:
        find([asked])
    assert str(found.value).startswith(message)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import pytest; pytest.skip('later', allow_module_level=True)", "Skipped: "),
        ("1 +", "SyntaxError: invalid syntax"),
    ],
)
def test_a_file_that_does_not_import_is_named(line, cause):
    write("bad.py", text=f"{CASE}{line}\n")
    for asked in ("bad.py", "bad.py:x", "."):
        with pytest.raises(UnreadableFileError) as found:
            find([asked])
        assert str(found.value).startswith(f"bad.py: {cause}")


def test_a_module_that_fails_is_named():
    write("failing_module.py", text="raise RuntimeError('at import')\n")
    with pytest.raises(UnreadableFileError, match=r"^failing_module: RuntimeError: at import$"):
        find(["failing_module:x"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool", r"^pyproject\.toml: Expected"),
        ('[tool.trivet]\npaths = "some"', r"paths = 'some': expected a list"),
        ('[tool.trivet]\npaths = ["gone"]', r"^pyproject\.toml: \[tool\.trivet\] paths: gone: no"),
    ],
)
def test_a_bad_pyproject_is_named(text, message):
    Path("pyproject.toml").write_text(text)
    with pytest.raises(UnreadableFileError, match=message):
        find()


def test_a_file_is_imported_once_and_sees_its_neighbours():
    write("helper_of_case.py", text="value = 3\n")
    write("case.py", "first", text="from helper_of_case import value\n" + CASE)
    assert find(["case.py"])[0].contract is find(["case.py:first"])[0].contract
