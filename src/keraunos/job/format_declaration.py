"""What a model format says about itself, so that a job is checked before any work. Runs on the driver and on workers.

A format's class has a `FormatDeclaration` as its attribute `declaration`. What a job checks and asks about the format
of its model is read from it, for the formats that are built in and for registered ones alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keraunos.errors import ColumnError, JobError, one_of
from keraunos.job.columns import Slot


@dataclass(frozen=True)
class FormatDeclaration:
    """What a job must know of a format, as plain data.

    Attributes:
        noun: what an error calls a model of this format, with its article, as "a TensorFlow graph".
        backends: what can run it; a `ModelSource` names one of them.
        takes_byte_labels: whether a label may be a column of bytes.
        keeps_optimizer: whether an archive takes over the state of an optimizer that has stepped on workers.
    """

    noun: str
    backends: tuple[str, ...]
    takes_byte_labels: bool = False
    keeps_optimizer: bool = False

    def check_backend(self, backend: str) -> None:
        """Refuse a backend that does not run this format."""
        if backend in self.backends:
            return
        if len(self.backends) > 1:
            raise JobError(one_of("backend", backend, self.backends))
        noun = self.noun[:1].upper() + self.noun[1:]
        raise JobError(f"{noun} needs backend={self.backends[0]!r}. Received: {backend!r}.")

    def check_labels(self, name: str, labels: Sequence[Slot]) -> None:
        """Refuse labels that no model of this format compares with; `name` is that of the format."""
        texts = [slot for slot in labels if slot.kind == "bytes"]
        if texts and not self.takes_byte_labels:
            raise ColumnError(
                f"Column {texts[0].columns[0]!r} holds bytes, which only a TensorFlow graph takes as a label. "
                f"Received: a model of format {name!r}. Encode the column as numbers first."
            )
