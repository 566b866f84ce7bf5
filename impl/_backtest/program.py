"""`python -m trivet.impl backtest`: the commands, their options and what they print.

Exit status: 0 done, 2 for a configuration, events or machine that cannot be used, 130 stopped.
"""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trivet.impl._backtest.checkpoint import CheckpointError
from trivet.impl._backtest.config import Config, read_config
from trivet.impl._backtest.sweep import Outcome, Sweep, best
from trivet.impl._backtest.tree import ConfigError
from trivet.impl._tables import EventsError

UNUSABLE = 2
STOPPED = 130
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(commands, name="backtest", help="Backtests, many variants side by side.")


@app.callback()
def programs() -> None:
    """What runs on the production kernels."""


ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file.")]
OUTPUT_HELP = "The result, Parquet; default: the name of CONFIG, in the current folder."
Output = Annotated[Path | None, typer.Option("--output", "-o", help=OUTPUT_HELP)]
STRIDE_HELP = "Sample the probabilities of every N-th event; over `sampling` of CONFIG."
Stride = Annotated[
    int | None,
    typer.Option("--per-horizon-logit-sampling-stride", min=1, metavar="N", help=STRIDE_HELP),
]
Restart = Annotated[bool, typer.Option(help="Forget what an earlier, stopped run has done.")]
SAVE_HELP = "Seconds between checkpoints."
Save = Annotated[float, typer.Option("--save-every", min=0, metavar="SECONDS", help=SAVE_HELP)]
AT_ONCE_HELP = "Variants that run side by side."
AtOnce = Annotated[int, typer.Option("--at-once", min=1, metavar="N", help=AT_ONCE_HELP)]
VARIANT_HELP = "Print the diagnosis of this variant; default: the first."
Variant = Annotated[str | None, typer.Option(metavar="NAME", help=VARIANT_HELP)]


@commands.command()
def run(
    config: ConfigPath,
    output: Output = None,
    stride: Stride = None,
    restart: Restart = False,
    save_every: Save = 10.0,
) -> None:
    """Run the base of CONFIG alone."""
    with _explained():
        chosen = _with_stride(read_config(config, alone=True), stride)
        _perform(_prepared(chosen, output, save_every), restart)


@commands.command()
def sweep(
    config: ConfigPath,
    output: Output = None,
    stride: Stride = None,
    restart: Restart = False,
    save_every: Save = 10.0,
    at_once: AtOnce = 4096,
    variant: Variant = None,
) -> None:
    """Run every variant of CONFIG; stopped, the same command goes on."""
    with _explained():
        chosen = _with_stride(read_config(config), stride)
        diagnosed = _place(chosen, variant)
        _perform(_prepared(chosen, output, save_every, at_once), restart, diagnosed)


@contextmanager
def _explained() -> Iterator[None]:
    """Tell what is wrong in one line, and leave with the status for it."""
    try:
        yield
    except (ConfigError, EventsError, CheckpointError) as error:
        _fail(str(error))
    except RuntimeError as error:
        if "active drivers" not in str(error):
            raise
        _fail("no GPU here; on a CPU: trivet run -- python -m trivet.impl backtest ...")
    except OSError as error:
        _fail(f"{error.filename or 'the result'}: cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        typer.echo("backtest: stopped; the same command goes on from the last checkpoint", err=True)
        raise typer.Exit(STOPPED) from None


def _fail(text: str) -> NoReturn:
    typer.echo(f"backtest: {text}", err=True)
    raise typer.Exit(UNUSABLE)


def _with_stride(config: Config, stride: int | None) -> Config:
    return config if stride is None else replace(config, stride=stride)


def _place(config: Config, variant: str | None) -> int:
    """The number of the variant whose diagnosis is printed."""
    if variant is None:
        return 0
    if variant not in config.names:
        near = difflib.get_close_matches(variant, config.names, 1, 0.0)[0]
        raise ConfigError(f"--variant: no variant {variant!r}; the nearest is {near!r}")
    return config.names.index(variant)


def _prepared(config: Config, output: Path | None, save_every: float, at_once: int = 1) -> Sweep:
    """All that can be wrong is found here, before anything runs or is written."""
    place = output or Path(f"{config.path.stem}.parquet")
    if not place.parent.is_dir():
        raise ConfigError(f"--output {place}: there is no folder {place.parent}")
    if place.is_dir() or place.suffix in (".yaml", ".yml"):
        raise ConfigError(f"--output {place}: would take the place of something else")
    if "path" in config.data and config.events_path().resolve() == place.resolve():
        raise ConfigError(f"--output {place}: is the file of events; choose another name")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Sweep(config, config.tape(), place, device, at_once, save_every)


def _perform(prepared: Sweep, restart: bool, diagnosed: int = 0) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>5.1f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        count, length = prepared.simulations, len(prepared.tape.ts)
        task = bar.add_task(f"{count} simulations x {length} events", total=prepared.total)
        outcome = prepared.perform(diagnosed, lambda work: bar.advance(task, work), restart)
    _tell(prepared, outcome)


def _tell(prepared: Sweep, outcome: Outcome) -> None:
    for line in outcome.lines:
        typer.echo(line)
    name, profit = best(outcome.table)
    typer.echo(f"backtest: most net profit {profit:.2f}, of {name}")
    if outcome.work:
        rate = outcome.work / outcome.seconds
        typer.echo(
            f"backtest: {outcome.work} simulations x events in {outcome.seconds:.1f} s of "
            f"launches, {rate:.0f} (simulations x events)/s"
        )
    rows = "row" if prepared.simulations == 1 else "rows"
    typer.echo(f"backtest: {prepared.simulations} {rows} written to {prepared.output}")
