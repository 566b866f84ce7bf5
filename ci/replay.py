"""A saved failure judged again."""

from pathlib import Path

from trivet.ci.document import EXIT_STATUS
from trivet.ci.errors import CannotJudgeError


def replay_witness(path: Path) -> int:
    """Print what the law says of the witness's inputs now and return the exit status.

    Raises CannotJudgeError where the file is no witness, its contract or law is gone, or the
    law cannot be judged on its inputs.
    """
    import torch

    torch.set_num_threads(1)
    from trivet.properties._replay import replay

    try:
        replayed = replay(path)
    except ValueError as error:
        raise CannotJudgeError(str(error)) from error
    witness = replayed.witness
    if replayed.failure is not None:
        print(replayed.failure.text)
        return EXIT_STATUS["red"]
    if replayed.not_judged is not None:
        raise CannotJudgeError(f"{witness.contract}: {witness.law}: {replayed.not_judged}")
    print(f"{witness.contract} keeps {witness.law} at {witness.dtype} on the inputs of {path}")
    return EXIT_STATUS["green"]
