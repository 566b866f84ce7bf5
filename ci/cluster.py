"""Work on a Ray cluster: the events of ``ci.pool``, whatever happens to its workers and nodes.

A task of Ray hands its job to a worker process of its own, which it keeps warm from task to task:
jobs fork, and a process of Ray's has threads that do not survive that. Ray gives the task of a
worker or node that is gone to another one; this process hears of every job exactly once.
"""

import hashlib
import logging
import os
import pickle
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trivet.ci.errors import CannotJudgeError
from trivet.ci.gate import Settings
from trivet.ci.pool import Event, Note, Standing, run_jobs, start_method

if TYPE_CHECKING:
    from trivet.properties._collect import Found

# So often Ray starts a job anew whose worker or node is gone, before it counts as lost.
RETRIES = 8
# Seconds in which a cluster's address must answer.
_ANSWERS = 10.0
# Jobs given out ahead, for each processor: what is running, and what runs next.
_AHEAD = 2


class Judge(Protocol):
    """Work on contracts that are collected by name, in whatever process it runs."""

    names: Sequence[str]
    seed: int
    found: "list[Found]"

    def __call__(self, job: Any, note: Note, /) -> Any:
        """Return what comes of one job."""


def run_anywhere(
    work: Judge,
    jobs: Sequence[Any],
    settings: Settings,
    *,
    limit: float | None = None,
    on_device: bool = False,
) -> Iterator[Event]:
    """Yield events until every job has ended: of local workers, or of the cluster asked for.

    ``on_device`` jobs need a GPU each: one at a time here, on a cluster as many as it has.
    """
    if settings.cluster is not None:
        return _on_cluster(settings.cluster, work, jobs, limit, on_device)
    workers = 1 if on_device else settings.processes
    return run_jobs(work, jobs, workers, start_method(), limit=limit)


def devices(settings: Settings) -> int:
    """Return how many GPUs there are: of the cluster asked for, else of this machine."""
    if settings.cluster is not None:
        return int(_connected(settings.cluster).cluster_resources().get("GPU", 0))
    # Counted by the driver's library: a process that has opened CUDA can fork no more.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


@dataclass
class Posted:
    """Work as another node does it: in the folder of the command, on the same files or not at all.

    ``pickled`` is the work, ``contents`` are the digests of the contracts as the command found
    them. Work and jobs come as bytes, because a module notes the folder that it is imported in.
    """

    pickled: bytes
    folder: str
    contents: tuple[str, ...]
    work: Judge | None = None

    def __call__(self, job: bytes, note: Note) -> Any:
        """Return what comes of one job; raises RuntimeError where the node has other files."""
        if self.work is None:
            self.work = self._settled()
        return self.work(pickle.loads(job), note)

    def _settled(self) -> Judge:
        node = os.uname().nodename
        if not Path(self.folder).is_dir():
            raise RuntimeError(
                f"the node {node} has no folder {self.folder}: every node must see the same files"
            )
        os.chdir(self.folder)
        from trivet.ci.audit import collect_with_faults

        work: Judge = pickle.loads(self.pickled)
        work.found = collect_with_faults(work.names)
        if _contents(work) != self.contents:
            raise RuntimeError(
                f"the node {node} has another trivet, Python, torch or Triton, or other text in "
                f"{self.folder}: every node must see the same files"
            )
        if hasattr(work, "root"):
            work.root = Path(tempfile.mkdtemp(prefix="trivet-audit-"))
            Finalize(None, shutil.rmtree, args=(work.root, True), exitpriority=1)
        return work


def _contents(work: Judge) -> tuple[str, ...]:
    from trivet.ci.verdicts import content_of

    return tuple(content_of(item, work.seed) for item in work.found)


def _on_cluster(
    address: str, work: Judge, jobs: Sequence[Any], limit: float | None, on_device: bool
) -> Iterator[Event]:
    ray = _connected(address)
    posted = Posted(pickle.dumps(work), os.getcwd(), _contents(work))
    name = hashlib.sha256(posted.pickled).hexdigest()
    kind = {"num_cpus": 1, "num_gpus": int(on_device), "max_retries": RETRIES}
    task = ray.remote(**kind)(_judged)
    shared = ray.put(posted)
    waiting, flying = deque(enumerate(jobs)), dict[Any, int]()
    try:
        while waiting or flying:
            while waiting and len(flying) < _AHEAD * _processors(ray):
                number, job = waiting.popleft()
                flying[task.remote(name, shared, number, pickle.dumps(job), limit)] = number
            for reference in ray.wait(list(flying), num_returns=1)[0]:
                yield _event(ray, reference, flying.pop(reference))
    finally:
        for reference in flying:
            ray.cancel(reference, force=True)


def _processors(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _event(ray: Any, reference: Any, number: int) -> Event:
    try:
        event: Event = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return Event("failed", number, str(error.cause))
    except ray.exceptions.RayError as error:
        return Event("lost", number, f"lost {RETRIES + 1} times: {type(error).__name__}")
    return event


# The worker that a process of Ray keeps, by the name of its work.
_kept: dict[str, Standing] = {}


def _judged(name: str, posted: Posted, number: int, job: bytes, limit: float | None) -> Event:
    """Judge one job in a process of Ray's, on the GPUs that Ray lets this task see."""
    name += os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if name not in _kept:
        while _kept:
            _kept.popitem()[1].close()
        _kept[name] = Standing(posted, "spawn", limit)
    return _kept[name].judge(number, job)


def _connected(address: str) -> Any:
    """Return Ray, connected to a cluster. Raises CannotJudgeError where there is none."""
    try:
        import ray
    except ImportError:
        raise CannotJudgeError("--ray needs Ray: pip install 'trivet[ray]'") from None
    if ray.is_initialized():
        return ray
    try:
        _call_on(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        told = str(error).strip().partition("\n")[0]
        raise CannotJudgeError(
            f"--ray {address}: no cluster answers there ({told}); `ray start --head` prints the "
            "address of one"
        ) from error
    return ray


def _call_on(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself would ask for two minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_ANSWERS).close()
