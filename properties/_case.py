"""A case: the few numbers that say which inputs to build."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from trivet.properties._relations import Relation
from trivet.properties._sizes import Number
from trivet.properties._values import KINDS

_HARD = frozenset(KINDS) - {"normal", "uniform", "integers"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to draw one tensor argument.

    ``kind``, ``seed`` and ``scale`` say its values; ``shape`` chooses among the legal shapes;
    ``share`` is ``apart``, ``same:x`` (the very elements of x) or ``packed:x`` (one storage).
    """

    kind: str = "simplest"
    seed: int = 0
    scale: float = 0.0
    shape: int = 0
    layout: str = "dense"
    absent: bool = False
    share: str = "apart"


@dataclass(frozen=True, slots=True)
class Plant:
    """A value put over one element.

    ``where`` is ``first``, ``last``, ``edge:64`` (the last before that block's edge in each dim) or
    ``at:7`` (the element of that number, modulo the size).
    ``value`` is ``nan``, ``inf``, ``-inf`` or a number as text.
    """

    argument: str
    where: str
    value: str


@dataclass(frozen=True)
class Case:
    """Which inputs to build: sizes, a recipe for each tensor, scalars (of a Choice the index).

    Hashable, and JSON both ways. Its dicts are not to be changed: use ``dataclasses.replace``.
    ``label`` says where it comes from: plan, hypothesis, integers, empty, nonfinite, unread, pilot,
    shrunk.
    """

    dims: Mapping[str, int]
    recipes: Mapping[str, Recipe]
    scalars: Mapping[str, Number] = field(default_factory=dict)
    relation: Relation | None = None
    plants: tuple[Plant, ...] = ()
    label: str = "plan"

    @property
    def is_normal(self) -> bool:
        """Whether its values are everyday ones, on which a bound must nearly always decide."""
        everyday = all(recipe.kind not in _HARD for recipe in self.recipes.values())
        return everyday and not self.plants and self.relation is None

    @property
    def is_plain(self) -> bool:
        """Whether nobody could refuse it: dense, whole, no dim 0, no argument left out."""
        recipes = self.recipes.values()
        dense = all(recipe.layout == "dense" and recipe.share == "apart" for recipe in recipes)
        return dense and all(self.dims.values()) and not any(recipe.absent for recipe in recipes)

    def to_json(self) -> str:
        """The case as JSON, keys sorted, equal cases equal text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Case":
        """The case that ``to_json`` wrote."""
        data = json.loads(text)
        recipes = {name: Recipe(**recipe) for name, recipe in data.pop("recipes").items()}
        relation = data.pop("relation")
        plants = tuple(Plant(**plant) for plant in data.pop("plants"))
        tie = None if relation is None else Relation(**relation)
        return cls(recipes=recipes, relation=tie, plants=plants, **data)

    def __hash__(self) -> int:
        return hash(self.to_json())
