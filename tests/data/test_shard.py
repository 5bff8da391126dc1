import errno
import gc
import re
import resource
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.batch import ArraySpec, BatchSpec
from keraunos.data.shard import ShardBuilder
from keraunos.errors import ClusterError, ColumnError, DataError, JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.schedule import REMAINDERS, Schedule

PLENTY = 1 << 30


def columns(features="x", labels=None, **extra):
    return Columns(
        Slot.all_from(features, "featuresCol"), () if labels is None else Slot.all_from(labels, "labelCol"), **extra
    )


def shard_of(chosen, *batches, budget=PLENTY, spool_dir=None, seed=7, rank=0, validation_split=0.0, **options):
    with ShardBuilder(chosen, budget=budget, spool_dir=spool_dir, **options) as builder:
        for batch in batches:
            builder.add(batch)
        return builder.build(seed=seed, rank=rank, validation_split=validation_split)


def rows_table(count, seed=0):
    """Rows that differ, with a column of each shape a shard keeps in its own way."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((count, 3)).astype(np.float32)
    vectors = [
        {"type": 1, "size": None, "indices": None, "values": [1.0, float(i), 0.0]}
        if i % 3 == 0
        else {"type": 0, "size": 3, "indices": [i % 3], "values": [float(i)]}
        for i in range(count)
    ]
    vector = pa.struct(
        [
            ("type", pa.int8()),
            ("size", pa.int32()),
            ("indices", pa.list_(pa.int32())),
            ("values", pa.list_(pa.float64())),
        ]
    )
    return pa.record_batch(
        {
            "x": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 3).cast(pa.list_(pa.float32())),
            "v": pa.array(vectors, type=vector),
            "y": pa.array(np.arange(count, dtype=np.int64)),
            "w": pa.array(random.random(count)),
            "is_validation": pa.array(random.random(count) < 0.25),
        }
    )


EVERYTHING = columns({"x": "x", "v": "v"}, "y", weight="w", validation="is_validation")


def content(batches):
    """Every byte of the batches, in order."""
    return [
        (
            batch.rows,
            batch.inputs["x"].tobytes(),
            batch.inputs["v"].tobytes(),
            batch.targets.tobytes(),
            batch.weights.tobytes(),
        )
        for batch in batches
    ]


def everything_in(shard):
    return (
        shard.digest,
        content(shard.batches(0, 5)),
        content(shard.batches(1, 5)),
        content(shard.validation_batches(4)),
    )


def rechunked(table, random):
    """The same rows in another order and in other batches, some of them empty."""
    shuffled = table.take(pa.array(random.permutation(len(table))))
    cuts = np.sort(random.integers(0, len(table) + 1, size=random.integers(0, 5)))
    bounds = [0, *cuts.tolist(), len(table)]
    return [shuffled.slice(start, stop - start) for start, stop in pairwise(bounds)]


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
def test_every_row_is_seen_exactly_once_an_epoch(rows):
    shard = shard_of(columns("y"), pa.record_batch({"y": np.arange(rows)}))
    for epoch in range(3):
        batches = list(shard.batches(epoch, 32))
        assert [batch.rows for batch in batches[:-1]] == [32] * (len(batches) - 1)
        assert len(batches) == -(-rows // 32)
        assert sorted(value for batch in batches for value in batch.inputs.tolist()) == list(range(rows))


@given(
    sizes=st.lists(st.integers(0, 40), max_size=6),
    batch_size=st.integers(1, 50),
    epoch=st.integers(0, 3),
    rank=st.integers(0, 5),
    fraction=st.floats(0, 0.99),
    shuffle=st.booleans(),
)
def test_epochs_are_exact_for_any_sizes(sizes, batch_size, epoch, rank, fraction, shuffle):
    total = sum(sizes)
    starts = np.cumsum([0, *sizes])
    parts = [pa.record_batch({"y": np.arange(start, start + size)}) for start, size in zip(starts, sizes, strict=False)]
    shard = shard_of(columns("y"), *parts, rank=rank, validation_split=fraction)
    training = [value for batch in shard.batches(epoch, batch_size, shuffle) for value in batch.inputs.tolist()]
    validation = [value for batch in shard.validation_batches(batch_size) for value in batch.inputs.tolist()]
    assert sorted(training + validation) == list(range(total))
    assert (len(training), len(validation)) == (shard.rows, shard.validation_rows)
    assert shard.validation_rows == int(total * fraction)
    assert (shard.rows > 0) == (total > 0)


@settings(deadline=None)
@given(count=st.integers(1, 60), seed=st.integers(0, 2**32), floatx=st.sampled_from(["float16", "float32", "float64"]))
def test_batches_do_not_depend_on_how_the_rows_arrived(count, seed, floatx):
    random = np.random.default_rng(seed)
    table = rows_table(count, seed)
    first = shard_of(EVERYTHING, table, floatx=floatx)
    second = shard_of(EVERYTHING, *rechunked(table, random), floatx=floatx)
    assert everything_in(first) == everything_in(second)


@settings(deadline=None)
@given(count=st.integers(1, 60), seed=st.integers(0, 2**32), budget=st.integers(1, 3000))
def test_mapped_files_give_the_same_bits_as_memory(tmp_path_factory, count, seed, budget):
    random = np.random.default_rng(seed)
    table = rows_table(count, seed)
    folder = tmp_path_factory.mktemp("spool")
    mapped = shard_of(EVERYTHING, *rechunked(table, random), budget=budget, spool_dir=str(folder))
    assert everything_in(mapped) == everything_in(shard_of(EVERYTHING, table))
    assert list(folder.iterdir()) == []


def test_rows_that_are_equal_all_count():
    shard = shard_of(columns("y"), pa.record_batch({"y": np.zeros(10, dtype=np.int32)}))
    assert sum(batch.rows for batch in shard.batches(0, 3)) == 10


def test_a_batch_holds_the_rows_it_was_given():
    table = rows_table(50)
    shard = shard_of(EVERYTHING, table)
    expected = {row["y"]: row for row in table.to_pylist()}
    batches = [*shard.batches(0, 8), *shard.validation_batches(8)]
    training = shard.rows
    seen = 0
    for batch in batches:
        for position, label in enumerate(batch.targets.tolist()):
            row = expected[label]
            np.testing.assert_array_equal(batch.inputs["x"][position], np.float32(row["x"]))
            assert batch.weights[position] == np.float32(row["w"])
            assert row["is_validation"] == (seen >= training)
            seen += 1
    assert seen == 50


def order_of(shard, epoch, **options):
    return [value for batch in shard.batches(epoch, 4, **options) for value in batch.inputs.tolist()]


def test_the_order_is_a_function_of_seed_epoch_and_rank():
    batch = pa.record_batch({"y": np.arange(50)})
    orders = {
        (seed, rank, epoch): tuple(order_of(shard_of(columns("y"), batch, seed=seed, rank=rank), epoch))
        for seed in (0, 1, -1)
        for rank in (0, 1)
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == len(orders)
    again = shard_of(columns("y"), batch, seed=1, rank=1)
    assert tuple(order_of(again, 1)) == orders[1, 1, 1]
    assert tuple(order_of(again, 0)) == orders[1, 1, 0]


def test_without_shuffling_every_epoch_has_one_order():
    shard = shard_of(columns("y"), pa.record_batch({"y": np.arange(50)}))
    assert order_of(shard, 0, shuffle=False) == order_of(shard, 1, shuffle=False)
    assert order_of(shard, 0, shuffle=False) != order_of(shard, 0)


def test_arrays_of_a_batch_are_fresh_and_writable():
    shard = shard_of(columns("y"), pa.record_batch({"y": np.arange(4)}))
    (first,) = shard.batches(0, 4)
    before = first.inputs.copy()
    first.inputs[:] = -1
    (second,) = shard.batches(0, 4)
    np.testing.assert_array_equal(second.inputs, before)


def test_the_digest_tells_content_apart():
    table = rows_table(20)
    digest = shard_of(EVERYTHING, table).digest
    assert digest != shard_of(EVERYTHING, table.slice(0, 19)).digest
    for name in ("y", "w", "is_validation"):
        position = table.schema.names.index(name)
        turned = table.column(name).take(pa.array(np.arange(20)[::-1]))
        assert digest != shard_of(EVERYTHING, table.set_column(position, name, turned)).digest


def test_a_vector_counts_as_the_same_dense_or_sparse():
    kind = rows_table(1).schema.field("v").type
    as_dense = {"type": 1, "size": None, "indices": None, "values": [0.0] * 20 + [2.5]}
    as_sparse = {"type": 0, "size": 21, "indices": [20], "values": [2.5]}
    shards = [
        shard_of(columns("v"), pa.record_batch({"v": pa.array([row], type=kind)})) for row in (as_dense, as_sparse)
    ]
    assert shards[0].digest == shards[1].digest
    first, second = (shard.example(1).inputs for shard in shards)
    assert first.tobytes() == second.tobytes()


def test_dense_batches_before_and_after_sparse_ones_are_kept():
    kind = rows_table(1).schema.field("v").type
    dense = [{"type": 1, "size": None, "indices": None, "values": [float(i), 1.0, *[0.0] * 18]} for i in range(3)]
    sparse = [{"type": 0, "size": 20, "indices": [0, 2], "values": [float(i), 1.0]} for i in range(3, 6)]
    parts = [dense[:1], sparse[:2], dense[1:], sparse[2:]]
    shard = shard_of(columns("v"), *(pa.record_batch({"v": pa.array(part, type=kind)}) for part in parts))
    rows = np.concatenate([batch.inputs for batch in shard.batches(0, 4)])
    rows = rows[np.argsort(rows[:, 0])]
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert rows[:, 1].tolist() == [1, 1, 1, 0, 0, 0]
    assert rows[:, 2].tolist() == [0, 0, 0, 1, 1, 1]


def test_names_decide_between_one_array_and_a_dict():
    batch = pa.record_batch({"a": [1.0], "b": [2]})
    one = shard_of(columns("a", "b"), batch).example(1)
    assert (one.inputs.tolist(), one.targets.tolist()) == ([1.0], [2])
    named = shard_of(columns({"only": "a"}, {"p": "b", "q": ["a", "b"]}), batch).example(1)
    assert {name: array.tolist() for name, array in named.inputs.items()} == {"only": [1.0]}
    assert {name: array.tolist() for name, array in named.targets.items()} == {"p": [2], "q": [[1.0, 2.0]]}
    assert shard_of(columns("a"), batch).example(1).targets is None


def test_the_example_repeats_real_rows_where_there_are_few():
    shard = shard_of(columns("a", "b"), pa.record_batch({"a": [1.5], "b": [2]}))
    example = shard.example(3)
    assert (example.rows, example.inputs.tolist(), example.targets.tolist()) == (3, [1.5] * 3, [2] * 3)


def test_the_spec_says_what_batches_look_like():
    shard = shard_of(EVERYTHING, rows_table(9))
    assert shard.spec == BatchSpec(
        inputs={"x": ArraySpec((3,), "float32"), "v": ArraySpec((3,), "float32")},
        targets=ArraySpec((), "int64"),
        weighted=True,
    )


@pytest.mark.parametrize("batches", [[], [rows_table(0)]], ids=["no batches", "an empty batch"])
def test_a_shard_without_rows_gives_no_batches(batches):
    shard = shard_of(EVERYTHING, *batches, class_weight={1: 2.0})
    assert (shard.rows, shard.validation_rows) == (0, 0)
    assert list(shard.batches(0, 32)) == list(shard.validation_batches(32)) == []
    with pytest.raises(DataError, match="no rows"):
        _ = shard.spec


def test_only_validation_rows_still_give_an_example():
    batch = pa.record_batch({"a": [1.0, 2.0], "v": [True, True]})
    shard = shard_of(columns("a", validation="v"), batch)
    assert (shard.rows, shard.validation_rows) == (0, 2)
    assert shard.example(2).rows == 2


def weights_by_label(batches):
    return {
        label: weight
        for batch in batches
        for label, weight in zip(batch.targets.tolist(), batch.weights.tolist(), strict=True)
    }


@pytest.mark.parametrize("labels", [pa.array([0, 1, 2]), pa.array([0.0, 1.0, 2.0]), pa.array([0, 1, 2], pa.uint8())])
def test_class_weights_multiply_the_weight_column_and_unknown_classes_weigh_one(labels):
    batch = pa.record_batch({"y": labels, "w": [2.0, 3.0, 4.0]})
    shard = shard_of(columns("y", "y", weight="w"), batch, class_weight={2: 0.5, 0: 10.0})
    assert weights_by_label(shard.batches(0, 2)) == {0: 20.0, 1: 3.0, 2: 2.0}
    assert next(shard.batches(0, 2)).weights.dtype == np.float32


def test_class_weights_alone_weigh_training_rows_and_leave_validation_rows_alone():
    batch = pa.record_batch({"y": [0, 1, 2, 3], "v": [False, False, True, True]})
    shard = shard_of(columns("y", "y", validation="v"), batch, class_weight={0: 5.0, 2: 5.0})
    assert weights_by_label(shard.batches(0, 2)) == {0: 5.0, 1: 1.0}
    assert weights_by_label(shard.validation_batches(2)) == {2: 1.0, 3: 1.0}


def test_class_weights_read_one_hot_labels():
    batch = pa.record_batch({"x": [0, 1], "y": [[0.0, 1.0], [1.0, 0.0]]})
    shard = shard_of(columns("x", "y"), batch, class_weight={1: 3.0})
    found = {batch.inputs[0]: batch.weights[0] for batch in shard.batches(0, 1)}
    assert found == {0: 3.0, 1: 1.0}


def test_without_weights_a_batch_has_none():
    assert shard_of(columns("y"), pa.record_batch({"y": [1]})).example().weights is None


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), 1e300])
def test_a_weight_that_no_row_can_have_is_refused(weight):
    batch = pa.record_batch({"y": [1, 2], "w": [1.0, weight]})
    words = r"Column 'w' holds a weight .* expected a finite number of at least 0\. Received: .* in row 1\."
    with pytest.raises(DataError, match=words):
        shard_of(columns("y", weight="w"), batch)


def test_weights_are_exact_whatever_the_model_computes_in():
    batch = pa.record_batch({"y": [1], "w": [0.1]})
    assert shard_of(columns("y", weight="w"), batch, floatx="float16").example(1).weights[0] == np.float32(0.1)


def test_row_numbers_go_on_over_batches():
    with pytest.raises(DataError, match="Received: None in row 3"):
        shard_of(columns("y"), pa.record_batch({"y": [1, 2]}), pa.record_batch({"y": [3, None]}))


@pytest.mark.parametrize(
    ("chosen", "batch", "words"),
    [
        (columns("y", weight="w"), {"y": [1], "w": [[1.0]]}, "`weightCol` must be a column of single numbers"),
        (columns("y", validation="w"), {"y": [1], "w": [0.5]}, "`validationIndicatorCol` must be .* Received: float64"),
        (columns("y", validation="w"), {"y": [1], "w": [[True]]}, "`validationIndicatorCol` must be .* Received: bool"),
    ],
)
def test_weight_and_indicator_columns_of_another_type_are_refused(chosen, batch, words):
    with pytest.raises(ColumnError, match=words):
        shard_of(chosen, pa.record_batch(batch))


def test_the_indicator_may_be_a_number():
    shard = shard_of(columns("y", validation="v"), pa.record_batch({"y": [5, 6, 7], "v": [0, 1, 1]}))
    assert order_of(shard, 0) == [5]
    assert shard.validation_rows == 2


def test_class_weights_need_one_label_of_whole_numbers():
    with pytest.raises(JobError, match=r"`classWeight` needs exactly one label.* Received: 0 labels"):
        shard_of(columns("y"), class_weight={0: 1.0})
    with pytest.raises(DataError, match=r"`classWeight` needs labels that are whole numbers.* Received: 0.5 in row 1"):
        shard_of(columns("y", "y"), pa.record_batch({"y": [1.0, 0.5]}), class_weight={0: 1.0})
    with pytest.raises(ColumnError, match=r"Received: labels of shape \(1, 1\) in column 'y'"):
        shard_of(columns("y", "y"), pa.record_batch({"y": [[[1.0]]]}), class_weight={0: 1.0})


def test_validation_rows_are_chosen_in_one_way_only():
    batch = pa.record_batch({"y": [1], "v": [True]})
    with pytest.raises(JobError, match="either by `validationIndicatorCol` or by `validationSplit`"):
        shard_of(columns("y", validation="v"), batch, validation_split=0.5)


def test_the_split_depends_on_the_seed_alone():
    batch = pa.record_batch({"y": np.arange(100)})

    def chosen(seed):
        shard = shard_of(columns("y"), batch, seed=seed, validation_split=0.2)
        return {value for part in shard.validation_batches(7) for value in part.inputs.tolist()}

    assert chosen(1) == chosen(1) != chosen(2)
    assert len(chosen(1)) == 20


@pytest.mark.parametrize("batch_size", [0, -1])
def test_batch_sizes_start_at_one(batch_size):
    shard = shard_of(columns("y"), pa.record_batch({"y": [1]}))
    for call in (shard.validation_batches, lambda size: shard.batches(0, size)):
        with pytest.raises(JobError, match="`batchSize` must be a whole number of at least 1"):
            call(batch_size)


def open_files():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_files_are_gone_once_the_shard_is_closed(tmp_path):
    before = open_files()
    with ShardBuilder(EVERYTHING, budget=1, spool_dir=str(tmp_path)) as builder:
        builder.add(rows_table(100))
        assert builder.spilled
        assert list(tmp_path.iterdir()) == []
        with builder.build(seed=0, rank=0) as shard:
            assert sum(batch.rows for batch in shard.batches(0, 8)) == shard.rows
    assert open_files() == before
    with pytest.raises(ValueError, match="closed"):
        list(shard.batches(0, 8))


def test_files_are_gone_after_an_error(tmp_path):
    before = open_files()
    bad = pa.record_batch({"y": [None]}, schema=pa.schema([("y", pa.int64())]))
    with pytest.raises(DataError):
        shard_of(columns("y"), pa.record_batch({"y": np.arange(100)}), bad, budget=1, spool_dir=str(tmp_path))
    assert open_files() == before
    assert list(tmp_path.iterdir()) == []


def test_rows_stay_in_memory_within_the_budget(tmp_path):
    with ShardBuilder(columns("y"), budget=24 * 100, spool_dir=str(tmp_path)) as builder:
        builder.add(pa.record_batch({"y": np.arange(100)}))
        assert not builder.spilled
        builder.add(pa.record_batch({"y": np.arange(1)}))
        assert builder.spilled
        assert sorted(order_of(builder.build(seed=0, rank=0), 0)) == sorted([*range(100), 0])


def test_a_disk_without_room_is_a_clear_error(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = open_files()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(ClusterError) as raised:
            shard_of(columns("y"), pa.record_batch({"y": np.arange(100_000)}), budget=1000, spool_dir=str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    told = re.sub(r" \(\d+ bytes are free\)", "", str(raised.value))
    assert told == (
        f"Rows beyond the memory budget of 1000 bytes could not be written to {str(tmp_path)!r}. Expected: a directory "
        f"with room for the rows of this worker, 800000 bytes so far. Received: [Errno {errno.EFBIG}] File too large. "
        "Free some space there, choose another directory (`spark.local.dir`, or SPARK_LOCAL_DIRS on the executors), "
        "raise `memoryBudget`, or use more workers."
    )
    assert open_files() == before
    assert list(tmp_path.iterdir()) == []


def test_a_spool_directory_that_is_not_there_is_a_clear_error(tmp_path):
    missing = str(Path(tmp_path) / "none")
    with pytest.raises(ClusterError, match=r"could not be written to .*none"):
        shard_of(columns("y"), pa.record_batch({"y": [1]}), budget=1, spool_dir=missing)


def values_of(batches):
    return [batch.inputs.tolist() for batch in batches]


def numbered(rows, **options):
    return shard_of(columns("y"), pa.record_batch({"y": np.arange(rows)}), **options)


@given(
    sizes=st.lists(st.integers(0, 70), min_size=1, max_size=4),
    total=st.none() | st.integers(4, 60),
    batch_size=st.integers(1, 40),
    remainder=st.sampled_from(REMAINDERS),
    epoch=st.integers(0, 2),
)
def test_epochs_are_exact_but_for_the_rows_that_are_dropped(sizes, total, batch_size, remainder, epoch):
    schedule = Schedule(batch_size=batch_size, batch_total=total, remainder=remainder)
    for rank, rows in enumerate(sizes):
        batch = schedule.batch_of(rank, len(sizes))
        batches = values_of(numbered(rows, rank=rank).batches(epoch, batch, remainder=remainder))
        lengths = [len(each) for each in batches]
        seen = [value for each in batches for value in each]
        assert len(batches) == schedule.steps_of(rows, rank, len(sizes))
        assert len(seen) == len(set(seen)) == schedule.rows_of(rows, rank, len(sizes))
        assert set(lengths[:-1]) <= {batch}
        if remainder == "drop":
            assert rows - len(seen) < batch
            assert set(lengths) <= {batch}
        else:
            assert len(seen) == rows
            assert remainder == "keep" or rows <= 1 or batch == 1 or 1 not in lengths


def test_draws_are_choices_of_their_own_that_depend_on_seed_epoch_and_rank_only():
    def drawn(epoch=0, **options):
        return values_of(numbered(50, **options).batches(epoch, 20, draws=6))

    batches = drawn()
    assert [len(set(batch)) for batch in batches] == [20] * 6
    assert len({tuple(sorted(batch)) for batch in batches}) == 6
    assert len({value for batch in batches for value in batch}) > 40
    assert batches == drawn()
    others = [drawn(epoch=1), drawn(seed=8), drawn(rank=1)]
    assert all(batches != other for other in others)
    assert values_of(numbered(3).batches(0, 20, draws=2)) != []
    assert [sorted(batch) for batch in values_of(numbered(3).batches(0, 20, draws=2))] == [[0, 1, 2]] * 2


def test_validation_rows_follow_the_remainder():
    shard = numbered(130, validation_split=0.5)
    assert [len(each) for each in values_of(shard.validation_batches(32, remainder="keep"))] == [32, 32, 1]
    assert [len(each) for each in values_of(shard.validation_batches(32, remainder="join"))] == [32, 33]
    assert [len(each) for each in values_of(shard.validation_batches(32, remainder="drop"))] == [32, 32]
