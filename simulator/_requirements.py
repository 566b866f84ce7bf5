"""The versions of torch and triton that running a kernel needs, checked before either is used."""

import re
from importlib import metadata

NEEDED = {"torch": (2, 7), "triton": (3, 6)}


class RequirementError(ImportError):
    """torch or triton is missing or too old; the message names what is installed and needed."""


def require() -> None:
    """Check that torch and triton are installed and new enough, importing neither.

    Raises RequirementError naming the installed and the needed version of both.
    """
    installed = {name: _installed(name) for name in NEEDED}
    if all(_release(installed[name]) >= NEEDED[name] for name in NEEDED):
        return
    have = ", ".join(f"{name} {version or 'missing'}" for name, version in installed.items())
    need = ", ".join(f"{name} >= {_dotted(NEEDED[name])}" for name in NEEDED)
    raise RequirementError(
        f"trivet runs kernels with {need}; installed: {have}. "
        "Install both yourself (pip install 'trivet[torch]'): trivet never upgrades them."
    )


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(int(part) for part in found.groups()) if found else (0,)


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
