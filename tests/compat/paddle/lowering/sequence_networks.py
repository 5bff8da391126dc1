"""Small whole networks over sequences, in Paddle's own words, each with a batch that it can learn."""

from __future__ import annotations

import numpy as np

from keraunos.compat.paddle.config_parser import (
    ContextProjection,
    DotMulOperator,
    FullMatrixProjection,
    Input,
    Inputs,
    Layer,
    Outputs,
    Settings,
    TableProjection,
    parse_config,
)

LENGTHS = np.array([3, 1, 5, 2])
CLASSES = np.array([0, 1, 2, 1], np.int32)


def ids(least=0, most=6, lengths=LENGTHS):
    """Rows of ids, padded with -1."""
    drawn = np.random.default_rng(3).integers(least, most, (len(lengths), 6), dtype=np.int32)
    return np.where(np.arange(6)[None] < lengths[:, None], drawn, -1).astype(np.int32)


def vectors(width):
    return np.random.default_rng(4).normal(size=(len(LENGTHS), 6, width)).astype(np.float32)


def _data(name, size):
    Layer(name=name, type="data", size=size)


def _fc(name, source, size, **more):
    Layer(name=name, type="fc", inputs=[source], size=size, **more)


def _start(*inputs, outputs=("cost",)):
    Settings(batch_size=4, learning_rate=0.1)
    Inputs(*inputs)
    Outputs(*outputs)


def text_classifier():
    """Words through two layers of LSTM, the second backwards, and pooling, to a class."""
    _start("words", "label")
    _data("words", 6)
    _data("label", 3)
    Layer(name="embedded", type="mixed", size=4, inputs=[TableProjection("words", initial_std=0.5)], bias=False)
    _fc("gates", "embedded", 12)
    Layer(name="lstm", type="lstmemory", inputs=["gates"], active_type="tanh", active_state_type="tanh")
    _fc("gates_2", "lstm", 12)
    Layer(name="lstm_2", type="lstmemory", inputs=["gates_2"], active_type="tanh", reversed=True, drop_rate=0.2)
    Layer(name="state", type="get_output", size=3, inputs=[Input("lstm_2", input_layer_argument="state")])
    Layer(name="best", type="max", inputs=["lstm_2"])
    Layer(name="first", type="seqfirstins", inputs=["state"])
    Layer(name="output", type="fc", inputs=["best", "first"], size=3, active_type="softmax")
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["output", "label"])


def tagger():
    """Each word with its neighbours to a label, by a chain, whose labels are also found."""
    _start("words", "tags")
    _data("words", 6)
    _data("tags", 3)
    Layer(name="embedded", type="mixed", size=4, inputs=[TableProjection("words", initial_std=0.5)], bias=False)
    Layer(name="context", type="mixed", size=12, inputs=[ContextProjection("embedded", context_start=-1,
          context_length=3)], bias=False)  # fmt: skip
    _fc("scores", "context", 3)
    Layer(name="cost", type="crf", size=3, inputs=[Input("scores", parameter_name="chain"), "tags"])
    Layer(name="found", type="crf_decoding", size=3, inputs=[Input("scores", parameter_name="chain")])
    Layer(name="wrong", type="crf_decoding", size=3, inputs=[Input("scores", parameter_name="chain"), "tags"])


def listener():
    """Vectors through a GRU to labels whose places are unknown."""
    _start("sound", "spoken")
    _data("sound", 6)
    _data("spoken", 2)
    Layer(name="gru", type="gated_recurrent", inputs=["sound"], active_type="tanh")
    Layer(name="probabilities", type="fc", inputs=["gru"], size=3, active_type="softmax")
    Layer(name="cost", type="ctc", size=3, inputs=["probabilities", "spoken"], norm_by_times=True)


def attention():
    """Steps weighed against each other by a vector of the whole, and their sum."""
    _start("sound", "label")
    _data("sound", 6)
    _data("label", 3)
    Layer(name="mean", type="average", inputs=["sound"], average_strategy="average")
    Layer(name="spread", type="expand", inputs=["mean", "sound"])
    Layer(name="match", type="mixed", size=6, bias=False, inputs=[DotMulOperator(["spread", "sound"], scale=1)])
    _fc("weight", "match", 1, active_type="sequence_softmax", bias=False)
    Layer(name="weighed", type="scaling", inputs=["weight", "sound"])
    Layer(name="twice", type="seqconcat", inputs=["weighed", "sound"])
    Layer(name="halves", type="seqreshape", inputs=["twice"], size=3)
    Layer(name="total", type="average", inputs=["halves"], average_strategy="sum")
    Layer(name="last", type="seqlastins", inputs=["sound"])
    Layer(name="output", type="fc", inputs=["total", "last"], size=3, active_type="softmax")
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["output", "label"])


def next_word():
    """A label for each step, among many classes, by three costs at once."""
    _start("words", "next", outputs=("few", "tree", "each"))
    _data("words", 6)
    _data("next", 6)
    Layer(name="embedded", type="mixed", size=4, inputs=[TableProjection("words", initial_std=0.5)], bias=False)
    Layer(name="before", type="recurrent", inputs=["embedded"], active_type="tanh")
    Layer(name="few", type="nce", inputs=["before", "next"], num_classes=6, num_neg_samples=3,
          neg_sampling_dist=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2], active_type="sigmoid")  # fmt: skip
    Layer(name="tree", type="hsigmoid", inputs=["before", "next"], num_classes=6)
    _fc("output", "before", 6, active_type="softmax")
    Layer(name="each", type="multi-class-cross-entropy", inputs=["output", "next"])


def ranker():
    """Lists of documents, by their features and how relevant each is; and the first two of them as a pair."""
    _start("documents", "relevance", "from", "count")
    _data("documents", 6)
    _data("relevance", 1)
    _data("from", 6)
    _data("count", 6)
    Layer(name="part", type="subseq", inputs=["documents", "from", "count"])
    Layer(name="wanted", type="subseq", inputs=["relevance", "from", "count"])
    Layer(name="score", type="mixed", size=1, bias=False, inputs=[FullMatrixProjection("part", initial_std=0.0)])
    Layer(name="cost", type="lambda_cost", inputs=["score", "wanted"], NDCG_num=2)


def batch(name):
    """What the data layers of a network are fed with."""
    lengths = {"sound_length": LENGTHS.astype(np.int32)}
    fed = {
        "text_classifier": {"words": ids(), "label": CLASSES},
        "tagger": {"words": ids(), "tags": ids(most=3)},
        "listener": {"sound": vectors(6), **lengths, "spoken": ids(most=2, lengths=LENGTHS // 2)},
        "attention": {"sound": vectors(6), **lengths, "label": CLASSES},
        "next_word": {"words": ids(), "next": ids()},
        "ranker": {
            "documents": vectors(6),
            "documents_length": LENGTHS.astype(np.int32),
            "relevance": (np.arange(6) % 3)[None, :, None].repeat(4, axis=0).astype(np.float32),
            "relevance_length": LENGTHS.astype(np.int32),
            "from": np.array([0, 0, 1, 0], np.int32),
            "count": np.array([3, 1, 4, 2], np.int32),
        },
    }
    return fed[name]


NETWORKS = {each.__name__: each for each in (text_classifier, tagger, listener, attention, next_word, ranker)}


def parsed(name):
    """The configuration of a network."""
    return parse_config(NETWORKS[name], "").model_config
