"""A YAML file read with its line numbers: every value knows where it stands."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml


class ConfigError(ValueError):
    """A configuration that cannot be used; the text names file and line."""


@dataclass(frozen=True)
class Bounds:
    """What a number must be: from low to high, whole or not, low itself allowed or not."""

    low: float
    high: float
    whole: bool = False
    above: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if self.high in (float("inf"), 2**63 - 1):
            return f"{kind} {'above' if self.above else 'of at least'} {self.low:g}"
        high = self.high if self.whole else f"{self.high:g}"
        return f"{kind} {'above' if self.above else 'from'} {self.low:g} to {high}"

    def read(self, text: str) -> float | None:
        """Return the number that the text writes, None where it is none or lies outside."""
        try:
            value = _whole(text) if self.whole else float(_infinite(text))
        except (ValueError, OverflowError):
            return None
        inside = self.low < value <= self.high if self.above else self.low <= value <= self.high
        return value if inside else None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if value != int(value):
            raise
        return int(value)


def _infinite(text: str) -> str:
    """YAML writes .inf where Python writes inf."""
    return text.replace(".inf", "inf")


@dataclass(frozen=True)
class Item:
    """One value of a file, and its path there, like base.cost."""

    node: yaml.Node
    path: str
    file: str

    def error(self, text: str, node: yaml.Node | None = None) -> ConfigError:
        """An error about this value, or about a node inside it."""
        line = (node or self.node).start_mark.line + 1
        return ConfigError(f"{self.file}, line {line}: {self.path} {text}".replace(":  ", ": "))

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    def mapping(self, known: Iterable[str]) -> dict[str, "Item"]:
        """Its items by key, in order; unknown and repeated keys are errors."""
        names = list(known)
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"must be a mapping of {', '.join(names)}, got {self._shown()}")
        found: dict[str, Item] = {}
        for key, value in self.node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else str(key.tag)
            if name not in names:
                nearest = difflib.get_close_matches(name, names, 1, 0.0)[0]
                raise self.error(
                    f"has no key {name!r}; the nearest is {nearest!r}, known are "
                    f"{', '.join(names)}",
                    key,
                )
            if name in found:
                raise self.error(f"has {name!r} twice", key)
            path = f"{self.path}.{name}" if self.path != WHOLE else name
            found[name] = Item(value, path, self.file)
        return found

    def items(self) -> list["Item"]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"must be a list, got {self._shown()}")
        if not self.node.value:
            raise self.error("must not be empty")
        return [
            Item(node, f"{self.path}[{place}]", self.file)
            for place, node in enumerate(self.node.value)
        ]

    def number(self, bounds: Bounds) -> float:
        """Its value as a number; whole ones are ints."""
        node = self.node
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        value = bounds.read(node.value) if plain else None
        if value is None:
            raise self.error(f"must be {bounds}, got {self._shown()}")
        return value

    def text(self) -> str:
        """Its value as text."""
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value:
            raise self.error(f"must be text, got {self._shown()}")
        return str(self.node.value)

    def choice(self, options: Iterable[str]) -> str:
        """Its value, one of the options."""
        names = list(options)
        value = self.text()
        if value not in names:
            nearest = difflib.get_close_matches(value, names, 1, 0.0)[0]
            raise self.error(
                f"must be one of {', '.join(names)}, got {value!r}; the nearest is {nearest!r}"
            )
        return value

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value) if self.node.value or self.node.style else "nothing"
        return "a list" if self.is_list else "a mapping"


WHOLE = "the file"


def read_tree(path: Path) -> Item:
    """The whole file; ConfigError where it cannot be read or is no YAML."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}, line {line}: no YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: no YAML: {error}") from None
    if node is None:
        raise ConfigError(f"{path}: is empty; a configuration has at least `data`")
    return Item(node, WHOLE, str(path))
