"""What can go wrong while an oracle is evaluated."""


class OracleError(ValueError):
    """An oracle could not be evaluated on traced arrays; the text names function and operation."""

    def __init__(self, text: str, operation: str | None = None) -> None:
        super().__init__(text)
        self.operation = operation


class Undecidable(OracleError):
    """The oracle branches on a condition that lies within the rounding bounds."""
