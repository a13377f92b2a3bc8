"""The one error that a user can cause."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input, told in one sentence: where it is, what is wrong, and what would be right.

    The command line prints the sentence and ends with exit code 2, without a traceback.

    Examples:
        >>> from dissensus.votes import read_votes
        >>> try:
        ...     read_votes("nowhere.csv")
        ... except InputError as error:
        ...     print(error)
        nowhere.csv: there is no such file; check the name and the folder
    """

    def __init__(self, sentence: str) -> None:
        # A sentence may quote a cell that holds line breaks; it stays on one line.
        super().__init__(" ".join(sentence.splitlines()))
