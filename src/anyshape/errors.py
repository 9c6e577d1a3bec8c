"""What anyshape raises.

AnyshapeError
    DeclarationError    the call was wrong: one sentence that names both sides
    SavingError         the system does not let a file be written: one sentence with its reason
    ExportError         no file could be written, or a file is not right; it carries a result, beside which it stands
                        (`results/result.py`)
"""

from __future__ import annotations


class AnyshapeError(Exception):
    """The root of all errors that anyshape raises on purpose.

    >>> try:
    ...     anyshape.load("nowhere.onnx")
    ... except anyshape.AnyshapeError as error:
    ...     print(error)
    there is no file `nowhere.onnx`
    """

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the words, without pages of our own frames above them."""
        return [f"{type(self).__name__}: {self}"]


class DeclarationError(AnyshapeError, ValueError):
    """What was declared contradicts itself, the example or the model's signature.

    >>> anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), dims={"input": "batch 5"})
    Traceback (most recent call last):
    anyshape.errors.DeclarationError: `input` is declared `batch 5`, 5 on axis 1, but the example has shape (3, 4)
    """


class SavingError(AnyshapeError, OSError):
    """The system does not let a file be written: a full disk, a name that is too long, a folder that is read-only."""


def reason_of_system(error: BaseException) -> str:
    """What the system says of an error, without its number and its path."""
    return str(getattr(error, "strerror", None) or error)


def first_line(error: BaseException | None) -> str:
    """The first line of what an exception says, or nothing."""
    return (str(error).splitlines() or [""])[0]


def named_line(error: BaseException | None) -> str:
    """The same behind the exception's type: `ValueError: what it says`."""
    return f"{type(error).__name__}: {first_line(error)}"
