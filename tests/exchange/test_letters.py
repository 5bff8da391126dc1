"""Letters arrive once each and in order, whatever a connection loses, and both sides then know it."""

from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.letters import AGAIN_SECONDS, Post
from keraunos.exchange.wire import Kind, Message


class Wire:
    """Two sides, and a connection that passes letters on in order as long as it is not cut."""

    def __init__(self):
        self.here, self.there = Post(), Post()
        self.on_the_way = []
        self.arrived = []
        self.now = 0.0

    def say(self, content):
        self.on_the_way.append(self.here.stamp(Message(Kind.REPORT, round=content), self.now))

    def cut(self):
        self.on_the_way = []

    def deliver(self):
        for letter in self.on_the_way:
            if self.there.arrives(letter.number):
                self.arrived.append(letter.round)
        self.on_the_way = []

    def sign_of_life(self):
        self.here.confirm(self.there.standing.got, self.now)

    def pass_time(self):
        self.now += AGAIN_SECONDS + 1
        self.on_the_way += self.here.overdue(self.now)


@given(st.lists(st.sampled_from(["say", "cut", "deliver", "sign", "time"]), max_size=60))
def test_what_is_said_arrives_once_and_in_order(steps):
    wire = Wire()
    said = 0
    for step in steps:
        if step == "say":
            wire.say(said)
            said += 1
        else:
            {"cut": wire.cut, "deliver": wire.deliver, "sign": wire.sign_of_life, "time": wire.pass_time}[step]()
        assert wire.arrived == list(range(len(wire.arrived))), "in order, once each"
    for _ in range(2):
        wire.pass_time()
        wire.deliver()
        wire.sign_of_life()
    assert wire.arrived == list(range(said))
    assert wire.here.confirmed
    assert wire.here.overdue(wire.now + 1000) == []


@given(st.integers(0, 20), st.integers(0, 20))
def test_what_follows_a_gap_is_sent_again(said, got):
    post = Post()
    for content in range(said):
        post.stamp(Message(Kind.GO, round=content))
    assert [letter.number for letter in post.after(got)] == list(range(got + 1, said + 1))


def test_messages_without_a_number_are_always_taken():
    post = Post()
    assert [post.arrives(number) for number in (0, 2, 1, 1, 0, 2)] == [True, False, True, False, True, True]


def test_what_is_kept_for_others_is_bounded():
    post = Post(most=3)
    for content in range(10):
        post.stamp(Message(Kind.GO, round=content))
    assert [letter.round for letter in post.after(0)] == [7, 8, 9]
