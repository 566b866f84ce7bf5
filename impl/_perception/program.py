"""`python -m trivet.impl train` and `inspect`: their options and what they print.

Exit status: 0 done, 1 for a checkpoint with a broken invariant or a step that left a bucket
unchanged, 2 for what cannot be used, 130 stopped.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trivet.impl._perception.change import UnchangedBucketError
from trivet.impl._perception.checkpoint import CheckpointError
from trivet.impl._perception.inspect import inspect as inspected
from trivet.impl._perception.report import Report
from trivet.impl._perception.run import Run, Scores
from trivet.impl._perception.settings import SIZES, Settings, SettingsError
from trivet.impl._perception.trainer import Step
from trivet.impl._tables import EventsError
from trivet.impl._trace import Drainer, smoothness_lambda
from trivet.impl.trace import Ring

BROKEN = 1
UNUSABLE = 2
STOPPED = 130

DATA_HELP = "CSV, Parquet or a folder of them; default: the synthetic source."
Data = Annotated[list[Path] | None, typer.Option("--data", metavar="PATH", help=DATA_HELP)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The folder of checkpoints and reports.")
]
Size = Annotated[str, typer.Option("--size", help=f"{' or '.join(SIZES)}: of model and windows.")]
Seed = Annotated[int, typer.Option(min=0)]
Steps = Annotated[int | None, typer.Option(min=1, help="How far to train.")]
Rate = Annotated[float | None, typer.Option("--lr", min=0, help="AdamW's learning rate.")]
Decay = Annotated[float, typer.Option("--weight-decay", min=0)]
Base = Annotated[
    float, typer.Option("--smoothness-base-lambda", min=0, help="Weight of the smoothness loss.")
]
Trace = Annotated[
    Path | None, typer.Option("--kernel-step-trace", metavar="FILE", help="JSON lines of steps.")
]
Resume = Annotated[
    Path | None, typer.Option("--resume", metavar="CHECKPOINT", help="Go on from there.")
]
Epoch = Annotated[int | None, typer.Option(min=1, help="Steps between reports and checkpoints.")]
Horizons = Annotated[
    str | None, typer.Option(metavar="LIST", help="Look-ahead in events, like 30,100,300.")
]
By = Annotated[
    int, typer.Option("--transition-by", min=0, help="The last step of phase 1; 0: controller A's.")
]
Overfit = Annotated[bool, typer.Option("--overfit", help="Train on the first batch for ever.")]
Shuffle = Annotated[bool, typer.Option("--shuffle-labels", help="Leave nothing to predict.")]


def train(
    data: Data = None,
    output: Output = None,
    size: Size = "small",
    seed: Seed = 0,
    steps: Steps = None,
    lr: Rate = None,
    weight_decay: Decay = 0.0,
    smoothness_base_lambda: Base = 0.0,
    kernel_step_trace: Trace = None,
    resume: Resume = None,
    epoch: Epoch = None,
    horizons: Horizons = None,
    transition_by: By = 0,
    overfit: Overfit = False,
    shuffle_labels: Shuffle = False,
) -> None:
    """Train the perception model; stopped, it goes on with --resume OUTPUT/last.safetensors."""
    with _explained("train"):
        if size not in SIZES:
            raise SettingsError(f"--size: expected {' or '.join(SIZES)}, got {size!r}")
        found = replace(
            SIZES[size],
            data=tuple(str(path) for path in data or ()),
            seed=seed,
            weight_decay=weight_decay,
            smoothness_base_lambda=smoothness_base_lambda,
            transition_by=transition_by,
            overfit=overfit,
            shuffle=shuffle_labels,
        )
        given: dict[str, Any] = {
            "steps": steps,
            "lr": lr,
            "epoch": epoch,
            "horizons": _numbers(horizons),
        }
        settings = replace(found, **{k: v for k, v in given.items() if v is not None})
        _perform(settings.roomy(), _folder(output, resume), resume, kernel_step_trace)


def inspect(checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT")]) -> None:
    """Print what a checkpoint holds; status 1 where an invariant is broken, 2 unreadable."""
    found = inspected(checkpoint)
    for line in found.lines:
        typer.echo(line)
    raise typer.Exit(found.status)


def with_training(app: typer.Typer) -> typer.Typer:
    """Return `app` with these commands, added once."""
    held = [command.callback for command in app.registered_commands]
    for command in (train, inspect):
        if command not in held:
            app.command()(command)
    return app


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Tell what is wrong in one line, and leave with the status for it."""
    try:
        yield
    except (SettingsError, EventsError, CheckpointError) as error:
        _fail(name, str(error))
    except UnchangedBucketError as error:
        _fail(name, str(error), BROKEN)
    except RuntimeError as error:
        if "active drivers" not in str(error):
            raise
        _fail(name, f"no GPU here; on a CPU: trivet run -- python -m trivet.impl {name} ...")
    except OSError as error:
        _fail(name, f"{error.filename or 'the result'}: cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        typer.echo(f"{name}: stopped; --resume goes on from the last checkpoint", err=True)
        raise typer.Exit(STOPPED) from None


def _fail(name: str, text: str, status: int = UNUSABLE) -> NoReturn:
    typer.echo(f"{name}: {text}", err=True)
    raise typer.Exit(status)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """The horizons of an option; raises SettingsError for anything but positive integers."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise SettingsError(f"--horizons: expected positive integers like 30,100, got {text!r}")
    return tuple(int(part) for part in parts)


def _folder(output: Path | None, resume: Path | None) -> Path:
    """Where to write: as told, or beside the checkpoint that is gone on from."""
    if output is not None:
        return output
    return Path("perception") if resume is None else resume.parent


def _perform(settings: Settings, folder: Path, resume: Path | None, trace: Path | None) -> None:
    run = Run(settings, folder, "cuda" if torch.cuda.is_available() else "cpu")
    if resume is not None:
        run.resume(resume)
    with nullcontext() if trace is None else _tracing(run, trace):
        scores = _train(run)
    for line in summary(settings.horizons, scores):
        typer.echo(line)
    typer.echo(f"train: {run.trainer.done} steps, phase {run.trainer.phase}, written to {folder}")


def _tracing(run: Run, place: Path) -> Drainer:
    """Let the run's kernels write a ring that is drained to a file."""
    ring = Ring.create(device=run.device, step=run.trainer.done)
    run.trainer.ring = ring
    return Drainer(ring, place, [smoothness_lambda(horizons=len(run.settings.horizons))])


def _train(run: Run) -> Scores:
    columns = (BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
        task = bar.add_task("train", total=run.settings.steps, completed=run.trainer.done)

        def stepped(step: Step) -> None:
            bar.advance(task)
            if step.transitioned:
                bar.console.print(f"train: transition after step {step.number}")

        return run.perform(stepped, lambda report: _tell(run.settings.horizons, report))


def _tell(horizons: Sequence[int], report: Report) -> None:
    """One line an epoch."""
    losses = " ".join(f"h{h} {_shown(x)}" for h, x in zip(horizons, report.loss, strict=True))
    areas = " ".join(_shown(x) for x in report.auc)
    typer.echo(f"train: step {report.step} phase {report.phase}: loss {losses}; AUC {areas}")
    if report.alike:
        typer.echo("train: all horizons behave alike while their labels do not", err=True)
    for bucket in report.degraded:
        typer.echo(f"train: bucket {bucket} is degraded", err=True)


def summary(horizons: Sequence[int], scores: Scores) -> list[str]:
    """A line for each horizon: the test loss against the best constant's."""
    rows = zip(horizons, scores.loss, scores.constant_loss, scores.auc, strict=True)
    return [
        f"test: h{horizon} loss {_shown(loss)}, constant {_shown(constant)} "
        f"({_shown(100 * (loss / constant - 1), 1)} %), AUC {_shown(area)}"
        for horizon, loss, constant, area in rows
    ]


def _shown(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"
