"""How much is generated: the profiles quick, ci and deep."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """How many examples each (law, dtype) judges; laws over a fixed list judge the whole list.

    ``planned`` examples come from the covering design, the others from Hypothesis; with
    ``target`` Hypothesis is steered towards large error ratios.
    """

    name: str
    examples: int
    planned: int = 20
    target: bool = False


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("quick", 20),
        Profile("ci", 100),
        Profile("deep", 1000, target=True),
    )
}


def profile_of(name: str) -> Profile:
    """Return the profile called ``name``; raises ValueError naming the ones there are."""
    if name not in PROFILES:
        raise ValueError(f"profile {name!r}: expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
