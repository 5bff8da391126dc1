"""Messages that must arrive, over a connection that may break. Runs on both sides; no I/O, no clock.

A connection that is reset loses what was on its way, and nobody is told. Letters are numbered: the receiver takes each
once and in order, and says now and then how far it has come; the sender keeps a letter until then, and sends it again
where the receiver does not get on. The coordinator's signs of life carry both numbers, so that either side finds out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from keraunos.exchange.messages import Alive
from keraunos.exchange.wire import Message

# A sign of life comes every two seconds: after two of them that confirm nothing, letters are sent again.
AGAIN_SECONDS = 5.0
# How many letters are kept for somebody else, who may be slow, or hostile.
MOST_KEPT = 4096


class Post:
    """One side's letters over one connection; `sent` and `got` are the numbers of the last ones."""

    def __init__(self, most: int | None = None) -> None:
        self.sent = 0
        self.got = 0
        self._kept: deque[Message] = deque(maxlen=most)
        self._since = 0.0

    @property
    def confirmed(self) -> bool:
        """Whether the other side has everything."""
        return not self._kept

    def stamp(self, message: Message, now: float = 0.0) -> Message:
        """The message as a letter, which is kept until it is confirmed."""
        if not self._kept:
            self._since = now
        self.sent += 1
        letter = replace(message, number=self.sent)
        self._kept.append(letter)
        return letter

    def arrives(self, number: int) -> bool:
        """Whether what arrived under that number is to be taken: the next letter, or no letter at all."""
        if number == 0:
            return True
        if number != self.got + 1:
            return False
        self.got = number
        return True

    def confirm(self, got: Any, now: float = 0.0) -> None:
        """The other side has the letters up to that number."""
        before = len(self._kept)
        while self._kept and self._kept[0].number <= got:
            self._kept.popleft()
        if len(self._kept) < before:
            self._since = now

    def after(self, got: int) -> list[Message]:
        """The letters that follow that number, to be sent again."""
        return [letter for letter in self._kept if letter.number > got]

    def overdue(self, now: float) -> list[Message]:
        """The letters to send again because nothing was confirmed for too long; asked again, none for as long."""
        if not self._kept or now - self._since <= AGAIN_SECONDS:
            return []
        self._since = now
        return list(self._kept)

    @property
    def standing(self) -> Alive:
        """What the other side is told."""
        return Alive(self.got, self.sent)
