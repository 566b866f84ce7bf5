"""The command line where packages are missing or old: blocked.py torch=none,triton=3.5 gate."""

import sys
from importlib import metadata

PACKAGES = dict(item.split("=") for item in sys.argv.pop(1).split(","))
_version = metadata.version


class Blocker:
    """Refuses to import the packages, as if they had never been installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if PACKAGES.get(name.partition(".")[0]) == "none":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def version(name: str) -> str:
    found = PACKAGES.get(name) or _version(name)
    if found == "none":
        raise metadata.PackageNotFoundError(name)
    return found


sys.meta_path.insert(0, Blocker())  # type: ignore[arg-type]
metadata.version = version

from trivet.ci.main import main  # noqa: E402

main()
