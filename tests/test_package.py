"""What users get: the wheel's contents, the links, and an import that stays light."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("impl", "oracles", "simulator", "properties", "faults", "fixtures", "ci")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in a wheel built from a copy, so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("package")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for folder in (*FOLDERS, "src", "tests", "examples"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    (built,) = (copy / "dist").glob("trivet-*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_the_wheel_holds_only_the_package(wheel: list[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"trivet"}
    assert not [name for name in wheel if Path(name).name.startswith(("test_", "conftest"))]


def test_the_wheel_holds_every_module_once(wheel: list[str]) -> None:
    ours = {
        str(path.relative_to(ROOT / "src"))
        for folder in FOLDERS
        for path in (ROOT / "src" / "trivet" / folder).rglob("*.py")
    }
    packed = [name for name in wheel if name.endswith(".py") and name.count("/") > 1]

    assert sorted(packed) == sorted(ours)


@pytest.mark.parametrize(
    "name", ["trivet/py.typed", "trivet/ci/pages/page.html", "trivet/ci/pages/style.css"]
)
def test_the_wheel_holds_what_is_no_module(wheel: list[str], name: str) -> None:
    assert name in wheel


def test_every_folder_is_a_relative_link() -> None:
    links = {
        path.name: path.readlink() for path in (ROOT / "src/trivet").iterdir() if path.is_symlink()
    }

    assert links == {folder: Path("../..") / folder for folder in FOLDERS}


def test_import_trivet_imports_nothing_heavy() -> None:
    code = (
        "import sys, trivet; "
        "heavy = {'torch', 'triton', 'numpy', 'hypothesis', 'mpmath', 'typer', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_the_command_says_its_version_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; from trivet.ci.main import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TERM": "dumb"},
    )
    assert shown.stdout.startswith("trivet ")


def test_an_unknown_name_of_the_face_is_an_attribute_error() -> None:
    import trivet

    with pytest.raises(AttributeError, match="module 'trivet' has no attribute 'contract'"):
        _ = trivet.contract  # type: ignore[attr-defined]


def test_a_family_folder_is_not_a_stray_top_level_package() -> None:
    for folder in FOLDERS:
        shown = subprocess.run(
            [sys.executable, "-c", f"import {folder}"], capture_output=True, cwd="/", check=False
        )
        assert shown.returncode == 1, f"`import {folder}` works outside the repository"
