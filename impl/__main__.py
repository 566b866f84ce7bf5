"""`python -m trivet.impl`: the programs that run on the production kernels."""

import typer

from trivet.impl._backtest import program

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(program.app, name="backtest", help="Backtests, many variants side by side.")

if __name__ == "__main__":
    app(prog_name="python -m trivet.impl")
