"""`check` without a model: a file is run at many sizes on made-up inputs, and held to what it says of itself."""

from __future__ import annotations

from anyshape.verification.file_alone_checking import check_alone

__all__ = ["check_alone"]
