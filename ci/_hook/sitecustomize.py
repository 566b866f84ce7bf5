"""Found by every Python process that `trivet run` starts, and by those they start.

Nothing of trivet is imported until torch or Triton is, and of it only the simulated device until
the first launch. The user's own sitecustomize runs as it would without this one.
"""

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_LAUNCHERS = {
    "triton.runtime.jit": "JITFunction",
    "triton.runtime.autotuner": "Autotuner",
    "triton.runtime.interpreter": "InterpretedFunction",
}
_originals: dict[Any, Any] = {}


class _Loader:
    """Loads a module as its own loader does, then prepares it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: Any) -> Any:
        """Create the module as its own loader does."""
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Execute the module, give it its own loader back, and prepare it."""
        module.__spec__.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        _prepare(module)


class _Finder:
    """Lets torch and the modules of Triton that launch kernels be prepared once imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's own specification with a loader around its loader."""
        if name not in _LAUNCHERS and name not in ("torch", "triton.runtime.driver"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def _prepare(module: Any) -> None:
    if module.__name__ == "torch":
        from trivet.ci.run import stand_in

        stand_in()
        return
    if module.__name__ == "triton.runtime.driver":
        from trivet.simulator.device import SimulatedDriver

        module.driver.set_active(SimulatedDriver())
        return
    owner = getattr(module, _LAUNCHERS[module.__name__])
    _originals[owner] = owner.run
    owner.run = _first_launch


def _first_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for every `run` until the first launch, which installs the real routing."""
    for owner, original in _originals.items():
        owner.run = original
    from trivet.ci.run import install

    install()
    return self.run(*args, **kwargs)


def _chain() -> None:
    """Run the user's own sitecustomize, which this one hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("TRIVET_RUN_REPORT"):
    sys.meta_path.insert(0, _Finder())
    _chain()
