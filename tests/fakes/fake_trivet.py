"""The command line on fake contracts: python fake_trivet.py gate ..."""

import os
import signal
import time

import fake_engine
from fake_engine import CONTRACTS, Contract, fault


def _crash() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def _slow() -> str:
    time.sleep(60)
    return "green"


fake_engine.install()
GREEN = {"matches_oracle": "green", "gradients_match": "not_promised"}
CONTRACTS.update(
    softmax=Contract(GREEN, ("float32", "bfloat16"), [fault("mask_off_by_one")]),
    broken=Contract({"stays_in_bounds": "red", "repeats": "green"}),
    unclear=Contract({"matches_oracle": "not_judged"}),
    crashing=Contract({"matches_oracle": _crash, "repeats": "green"}),
    raising=Contract({"matches_oracle": lambda: 1 / 0}),
    slow=Contract({"matches_oracle": _slow}),
    weak=Contract(GREEN, faults=[fault("stale_row", "survived"), fault("mask")]),
)

if __name__ == "__main__":
    from trivet.ci.main import main

    main()
