"""The command line: `trivet gate`, `audit`, `bench`, `run`, `list`, `show`, `replay`.

Exit status of every command: 0 green, 1 red, 2 could not judge.
"""

import sys
import traceback
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet import __version__
from trivet.ci.errors import CannotJudgeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trivet.ci.document import Document
    from trivet.ci.gate import Settings

CANNOT_JUDGE = 2
WIDEST_TABLE = 400


class Profile(StrEnum):
    """How much is generated: 20, 100 or 1,000 examples a law and dtype."""

    quick = "quick"
    ci = "ci"
    deep = "deep"


class Executor(StrEnum):
    """Where launches run."""

    simulator = "simulator"
    interpreter = "interpreter"
    compile = "compile"
    gpu = "gpu"


NAME_HELP = "A contract, a glob, path.py, a folder or module:contract; default: every contract."
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help=NAME_HELP)]
ProfileOption = Annotated[Profile, typer.Option(help="20, 100 or 1,000 examples a law and dtype.")]
On = Annotated[Executor, typer.Option("--on", help="Where launches run.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same examples.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")]
SINCE_HELP = "Only functions that changed since a git revision."
Since = Annotated[str | None, typer.Option(metavar="REV", help=SINCE_HELP)]
RAY_HELP = "Judge on this Ray cluster; auto: the one of this machine."
Ray = Annotated[str | None, typer.Option(metavar="ADDRESS", help=RAY_HELP)]
Json = Annotated[Path | None, typer.Option("--json", help="Write machine output, version 1.")]
JUnit = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write one HTML page.")]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Proves a Triton kernel right, and proves that the proof can fail.",
    epilog="Exit status: 0 green, 1 red, 2 could not judge.",
)


def main() -> None:
    """Run the command line; what keeps a command from judging ends it with status 2."""
    from trivet.simulator._requirements import RequirementError

    try:
        app()
    except (CannotJudgeError, RequirementError) as error:
        print(f"trivet: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("trivet: interrupted", file=sys.stderr)
    except Exception:
        traceback.print_exc()
        print("trivet: the error above is in trivet itself; nothing was judged", file=sys.stderr)
    sys.exit(CANNOT_JUDGE)


def _version(asked: bool) -> None:
    if asked:
        print(f"trivet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command()
def gate(
    names: Names = None,
    profile: ProfileOption = Profile.quick,
    on: On = Executor.simulator,
    seed: Seed = 0,
    workers: Workers = None,
    json: Json = None,
    junit: JUnit = None,
    html: Html = None,
) -> None:
    """Judge every law of the named contracts."""
    _require(json, junit, html)
    from trivet.ci.gate import Settings, run_gates
    from trivet.ci.progress import Progress
    from trivet.ci.report import print_gates

    settings = Settings(profile.value, on.value, seed, workers)
    document = run_gates(names or (), settings, Progress())
    print_gates(document, _console())
    _finish(document, json, junit, html)


@app.command()
def audit(
    names: Names = None,
    faults_only: Annotated[
        bool, typer.Option("--faults-only", help="Hand-written faults, no generated mutants.")
    ] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Mutants of each contract, the first by their ids.")
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="K/N", help="Only the K-th of N parts of the mutants.")
    ] = "1/1",
    since: Since = None,
    tests: Annotated[
        str | None, typer.Option(metavar="CMD", help="Also run these tests on the same mutants.")
    ] = None,
    ray: Ray = None,
    seed: Seed = 0,
    workers: Workers = None,
    json: Json = None,
    junit: JUnit = None,
    html: Html = None,
) -> None:
    """Prove that the gates can turn red: by every past bug, and by small ones planted now."""
    _require(json, junit, html)
    from trivet.ci.audit import run_faults
    from trivet.ci.gate import Settings
    from trivet.ci.progress import Progress
    from trivet.ci.report import print_audit, print_faults

    settings = Settings(seed=seed, workers=workers, cluster=ray)
    if faults_only:
        document, unproved = run_faults(names or (), settings, Progress())
        print_faults(document, unproved, _console())
    else:
        chosen = (sample, _shard(shard), since)
        document, unproved = _audit_mutants(names or (), settings, chosen, tests)
        show = print_audit if document["part"] else print_faults
        show(document, unproved, _console())
    _finish(document, json, junit, html)


def _audit_mutants(
    names: "Sequence[str]",
    settings: "Settings",
    chosen: tuple[int | None, tuple[int, int], str | None],
    tests: str | None,
) -> "tuple[Document, set[str]]":
    from trivet.ci.audit import collect_with_faults, run_audit
    from trivet.ci.existing import ExistingTests
    from trivet.ci.mutants import Part
    from trivet.ci.progress import Progress

    sample, shard, since = chosen
    suite = None if tests is None else ExistingTests(tests, settings.processes, Progress())
    document, unproved = run_audit(names, settings, Progress(), Part(sample, shard), since)
    if suite is not None:
        suite.judge(document, collect_with_faults(names))
    return document, unproved


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise CannotJudgeError(f"--shard {text}: expected K/N, K from 1 to N")
    return int(number), int(count)


@app.command()
def merge(
    reports: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Reports, JSON.")],
    json: Json = None,
    junit: JUnit = None,
    html: Html = None,
) -> None:
    """Merge reports of parts into that of one run: shards of an audit, gates of contracts."""
    _require(json, junit, html)
    from trivet.ci.merge import merge as merged
    from trivet.ci.report import print_audit, print_faults, print_gates

    document = merged(reports)
    if "contracts" in document:
        print_gates(document, _console())
    else:
        show = print_audit if document["part"] else print_faults
        show(document, document["unproved"], _console())
    _finish(document, json, junit, html)


@app.command()
def bench(
    names: Names = None,
    static: Annotated[
        bool, typer.Option("--static", help="Only what the compiler makes of every kernel.")
    ] = False,
    timed: Annotated[bool, typer.Option("--timed", help="Only times, on a GPU.")] = False,
    against: Annotated[
        str, typer.Option(metavar="REV", help="Compare with a git revision, not with the locks.")
    ] = "",
    update: Annotated[
        bool, typer.Option("--update", help="Lock the static metrics as they are now.")
    ] = False,
    workers: Workers = None,
    json: Json = None,
    html: Html = None,
) -> None:
    """Say what got slower: by the compiled artifact, by memory traffic, and by time on a GPU."""
    _require(json, html=html)
    from trivet.ci.bench import Asked, run_bench
    from trivet.ci.bench_report import print_bench
    from trivet.ci.gate import Settings
    from trivet.ci.progress import Progress

    with_times = timed or (not static and not update and _sees_gpu())
    asked = Asked(static or not timed, with_times, against, update)
    started = perf_counter()
    document = run_bench(names or (), Settings(workers=workers), asked, Progress())
    print_bench(document, _console(), perf_counter() - started)
    _finish(document, json, None, html)


@app.command("list")
def list_contracts(names: Names = None) -> None:
    """List contracts: name, dtypes, laws, faults and where they stand."""
    _require()
    from trivet.ci.audit import collect_with_faults
    from trivet.ci.report import print_contracts

    print_contracts(collect_with_faults(names or ()), _console())


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME", help=NAME_HELP)]) -> None:
    """Print one contract's whole case as a page."""
    _require()
    from trivet.ci.audit import collect_with_faults
    from trivet.ci.show import page

    print("\n\n".join(page(found) for found in collect_with_faults([name])))


@app.command()
def replay(
    witness: Annotated[Path, typer.Argument(metavar="WITNESS", help="A saved witness, JSON.")],
) -> None:
    """Judge a saved failure again on exactly its inputs."""
    _require()
    from trivet.ci.replay import replay_witness

    raise typer.Exit(replay_witness(witness))


@app.command(context_settings={"allow_interspersed_args": False}, options_metavar="[--on ..] --")
def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="python or pytest ...")],
    on: On = Executor.simulator,
) -> None:
    """Run a Python command with its Triton launches routed to an executor."""
    _require()
    from trivet.ci.run import run_command

    raise typer.Exit(run_command(command, on=on.value))


def _require(json: Path | None = None, junit: Path | None = None, html: Path | None = None) -> None:
    from trivet.ci.document import require_writable
    from trivet.simulator._requirements import require

    if html is not None:
        from trivet.ci.html import require_jinja

        require_jinja()
    require_writable(*filter(None, (json, junit, html)))
    require()


def _sees_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _console() -> Any:
    from rich.console import Console

    # Rows as wide as they need: a narrow terminal wraps them, which loses less than cutting.
    return Console(width=WIDEST_TABLE)


def _finish(document: "Document", json: Path | None, junit: Path | None, html: Path | None) -> None:
    from trivet.ci import html as html_report
    from trivet.ci import junit as junit_report
    from trivet.ci.document import EXIT_STATUS, to_json, write_text

    writers = (
        (json, to_json),
        (junit, junit_report.junit),
        (html, html_report.html),
    )
    for path, render in writers:
        if path is None:
            continue
        try:
            write_text(path, render(document))
        except OSError as error:
            print(f"trivet: the report {path} cannot be written: {error}", file=sys.stderr)
            raise typer.Exit(2) from error
    raise typer.Exit(EXIT_STATUS[document["verdict"]])


if __name__ == "__main__":
    main()
