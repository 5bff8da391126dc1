"""BigDL's optim methods as objects: saved, loaded, and refused where they cannot be."""

import pytest

from keraunos.compat.zoo.bigdl.optim import optimizer as bigdl
from keraunos.compat.zoo.bigdl.optim.methods import METHODS
from keraunos.errors import JobError


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_a_method_is_saved_and_loaded_as_plain_json(kind, tmp_path):
    path = tmp_path / "method"
    kind().save(str(path))
    again = bigdl.OptimMethod.load(str(path))
    assert type(again) is kind
    assert again.options() == kind().options()
    with pytest.raises(JobError, match="overWrite"):
        kind().save(str(path))
    kind().save(str(path), overWrite=True)


def test_a_saved_schedule_comes_back_whole(tmp_path):
    schedule = bigdl.SequentialSchedule(5).add(bigdl.Warmup(0.1), 3).add(bigdl.MultiStep([2, 4], 0.1), 9)
    method = bigdl.SGD(0.1, leaningrate_schedule=schedule, weightdecays=[0.5, 0.25])
    method.save(str(tmp_path / "sgd"), True)
    again = bigdl.OptimMethod.load(str(tmp_path / "sgd"))
    assert [again.rate_at(step) for step in range(1, 20)] == [method.rate_at(step) for step in range(1, 20)]
    assert again.weightdecays == [0.5, 0.25]
    (tmp_path / "other").write_text("{}")
    with pytest.raises(JobError, match="that an optim method's `save` wrote"):
        bigdl.OptimMethod.load(str(tmp_path / "other"))


@pytest.mark.spark
def test_a_method_is_saved_under_any_hadoop_path(mounted, tmp_path):
    for root in (mounted, tmp_path.as_uri(), f"file:{tmp_path}"):
        method = bigdl.Adam(0.25)
        method.save(f"{root}/new/adam", True)
        assert bigdl.OptimMethod.load(f"{root}/new/adam").options() == method.options()
        with pytest.raises(JobError, match="overWrite"):
            method.save(f"{root}/new/adam")
    assert (tmp_path / "new" / "adam").exists()
    with pytest.raises(JobError, match="that an optim method's `save` wrote.*adamax"):
        bigdl.OptimMethod.load(f"{mounted}/adamax")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bigdl.SGD(nesterov=True, momentum=0.9), "dampening=0"),
        (lambda: bigdl.SGD(-1.0), "`learningrate` must be a number of at least 0. Received: -1.0"),
        (lambda: bigdl.SGD(leaningrate_schedule=0.5), "`leaningrate_schedule` must be one of"),
        (lambda: bigdl.SGD(leaningrate_schedule=bigdl.SequentialSchedule(3)), "with `add`"),
        (lambda: bigdl.SGD(learningrates=[[1.0]]), "one finite number for each parameter"),
        (lambda: bigdl.Adam(beta1=1.0), "`beta1` must be a number of at least 0 and below 1"),
        (lambda: bigdl.Adam(bigdl_type="double"), "`bigdl_type` must be 'float'"),
        (lambda: bigdl.Ftrl(learningrate_power=0.5), "`learningrate_power`"),
        (lambda: bigdl.ParallelAdam(parallel_num=4), "number of servers"),
        (lambda: bigdl.LBFGS(linesearch="wolfe"), "`linesearch`"),
        (lambda: bigdl.Plateau("accuracy"), "`monitor` must be one of 'Loss', 'score'"),
        (lambda: bigdl.SequentialSchedule(3).add(bigdl.Plateau("Loss"), 2), "to the method by itself"),
        (lambda: bigdl.SGD().rule(clip_constant=(1.0, -1.0)), "from less to more"),
        (lambda: bigdl.combined_rule("adam"), "`optim_method` must be one of"),
    ],
)
def test_what_a_method_cannot_do_is_refused_by_name(make, message):
    with pytest.raises(JobError, match=message):
        make()
