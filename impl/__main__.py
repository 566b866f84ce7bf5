"""`python -m trivet.impl`: the programs that run on the production kernels."""

import sys

UNUSABLE = 2


def main() -> None:
    """Run the command; status 2 and one line where a package is missing."""
    try:
        from trivet.impl._backtest.program import app
        from trivet.impl._perception.program import with_training
    except ModuleNotFoundError as error:
        print(f"needs {error.name}: pip install 'trivet[torch,suite]'", file=sys.stderr)
        raise SystemExit(UNUSABLE) from None
    with_training(app)(prog_name="python -m trivet.impl")


if __name__ == "__main__":
    main()
