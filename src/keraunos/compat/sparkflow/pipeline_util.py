"""SparkFlow's `pipeline_util`, of which little is left to do: spark.ml itself loads pipelines. Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable

from keraunos.errors import ModelError

# The mark that SparkFlow itself put on a stage that is a pickled Python object in disguise.
_PICKLED = "4c1740b00d3c4ff6806a1402321572cb"


class PysparkPipelineWrapper:
    """SparkFlow's function to extract its stages from a loaded pipeline."""

    @staticmethod
    def unwrap(pipeline: Any) -> Any:
        """Returns the pipeline itself, whose stages are what they were when they were saved.

        Raises an error if a stage is one that SparkFlow itself saved: that is a pickled object, which runs code when it
        is read.
        """
        if not isinstance(pipeline, Pipeline | PipelineModel):
            raise ModelError(f"`pipeline` must be a Pipeline or a PipelineModel. Received: {pipeline!r}.")
        _refuse_pickled(pipeline)
        return pipeline


class PysparkReaderWriter(DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]  # pyspark is untyped
    """Base class of custom stages that are saved in a pipeline; their Params are saved as in spark.ml."""


def _refuse_pickled(pipeline: Any) -> None:
    stages = pipeline.getStages() if isinstance(pipeline, Pipeline) else pipeline.stages
    for stage in stages:
        if isinstance(stage, Pipeline | PipelineModel):
            _refuse_pickled(stage)
        elif _PICKLED in (getattr(stage, "getStopWords", list)() or ()):
            raise ModelError(
                "The pipeline was saved by SparkFlow itself, which pickles its stages, and what is pickled is not read "
                f"here because it may run any code. Received: stage {stage.uid!r}. Fit the pipeline again, or restore "
                "its TensorFlow checkpoint with tensorflow_model_loader.load_tensorflow_model."
            )
