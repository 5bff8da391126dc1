"""Parses the command line of spark-submit, as far as needed to insert options before the script. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Every other option of spark-submit is followed by its value, unless it is written `--option=value`.
_WITHOUT_VALUE = frozenset({"--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version"})


@dataclass(frozen=True)
class SparkCommandLine:
    """Options for Spark, then the script, then the script's own arguments.

    Attributes:
        options: each option with its value, or with `None` if it has none.
        script: the first argument that is not an option; `""` if there is none.
        arguments: the arguments after the script.
    """

    options: tuple[tuple[str, str | None], ...]
    script: str
    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> SparkCommandLine:
        """Parse a command line. Values are not checked; spark-submit does that."""
        options: list[tuple[str, str | None]] = []
        rest = list(arguments)
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            name, equals, value = option.partition("=")
            if equals and name.startswith("--"):
                options.append((name, value))
            elif option in _WITHOUT_VALUE or not rest:
                options.append((option, None))
            else:
                options.append((option, rest.pop(0)))
        return cls(tuple(options), rest[0] if rest else "", tuple(rest[1:]))

    def value_of(self, name: str) -> str | None:
        """Returns the last value of an option, or `None`."""
        values = [value for option, value in self.options if option == name]
        return values[-1] if values else None

    def setting(self, name: str) -> str | None:
        """Returns the last value that `--conf` sets for a Spark setting, or `None`."""
        values = [
            value.partition("=")[2]
            for option, value in self.options
            if option in ("--conf", "-c") and value is not None and value.partition("=")[0] == name
        ]
        return values[-1] if values else None

    def without(self, name: str) -> SparkCommandLine:
        """Returns the same command line without an option."""
        kept = tuple(pair for pair in self.options if pair[0] != name)
        return SparkCommandLine(kept, self.script, self.arguments)

    def words(self) -> Iterator[str]:
        """Yields the options as words of a command line."""
        for name, value in self.options:
            yield name
            if value is not None:
                yield value
