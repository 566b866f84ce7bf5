"""Other people's kernel tests, unmodified, on the simulator.

    python -m trivet.ci.suites liger
    python -m trivet.ci.suites liger --only test_softmax --only test_rms_norm --each 3
    python -m trivet.ci.suites liger --table docs/suites.md

Fetches the project's source distribution into .trivet/suites, runs each file of its tests under
`trivet run -- pytest` and keeps every outcome as it comes: an interrupted run goes on where it
stopped. `--fresh` forgets what is on record.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trivet.ci.suites.projects import PROJECTS, Project, UnavailableError
from trivet.ci.suites.running import Limits, files_of_tests, read_file, record_of, run_files
from trivet.ci.suites.table import summary, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where a test failed unexplained or a fault was found, 2 without.

    Without: the project cannot be had, or no file matches.
    """
    options = _parser().parse_args(arguments)
    project = PROJECTS[options.project]
    try:
        project.fetch()
    except UnavailableError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    files = files_of_tests(project, options.only)
    if not files:
        print(f"no file of tests holds {options.only}", file=sys.stderr)
        return 2
    if options.fresh:
        _forget(project, files)
    if not options.no_run:
        limits = Limits(options.each, options.timeout, options.file_timeout)
        run_files(project, files, limits, lambda text: print(text, flush=True))
    results = [read_file(project, name) for name in files]
    if options.table:
        Path(options.table).write_text(table(project, results, options.timeout, options.each))
    text, status = summary(project, results)
    print(text)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trivet.ci.suites", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("project", choices=[*PROJECTS])
    parser.add_argument("--only", action="append", default=[], help="part of a file's path")
    parser.add_argument("--each", type=int, default=6, help="cases of each test function")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one test")
    parser.add_argument("--file-timeout", type=int, default=600, help="seconds for one file")
    parser.add_argument("--table", help="file to write the table to")
    parser.add_argument("--fresh", action="store_true", help="forget what is on record")
    parser.add_argument("--no-run", action="store_true", help="only read what is on record")
    return parser


def _forget(project: Project, files: Sequence[str]) -> None:
    for name in files:
        for suffix in (".jsonl", ".seconds", ".log"):
            record_of(project, name).with_suffix(suffix).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
