"""Messages of the Python interface in the words of the command line."""

from riskset._messages import Surface

__all__ = ["COMMAND_LINE", "CommandLine"]

COMMANDS = {
    "riskset.aalen_johansen": "curves",
    "riskset.kaplan_meier": "curves",
    "riskset.logrank_test": "curves",
    "riskset.pairwise_logrank_test": "curves --pairwise holm",
    "riskset.gray_test": "curves",
    "riskset.path": "path",
}
"""Functions of the Python interface -> the commands that call them."""


class CommandLine(Surface):
    """The command line, where parameters of Python are `options` of the command that runs."""

    def __init__(self, options: dict[str, str] | None = None) -> None:
        self.options = options or {}

    def argument(self, name: str) -> str | None:
        """`time_digits` is --time-digits."""
        return "the table" if name == "y" else self.options.get(name)

    def setting(self, name: str, value: object) -> str | None:
        """``duplicates='sum'`` is --duplicates sum, and a list repeats the option."""
        flag = self.options.get(name)
        if flag is None or value is True:
            return flag
        if isinstance(value, tuple):
            return f"{flag} {','.join(map(str, value))}"
        if isinstance(value, list):
            return " ".join(f"{flag} {one}" for one in value)
        return f"{flag} {'none' if value is None else value}"

    def function(self, name: str) -> str | None:
        """`riskset.aalen_johansen` is `riskset curves`."""
        return f"`riskset {COMMANDS[name]}`" if name in COMMANDS else None


COMMAND_LINE = CommandLine()
"""With the options of the command that runs."""
