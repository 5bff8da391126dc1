"""The modules of the older systems that are here, by the names that they had: what an error offers. Runs on the driver.

Beside them lie modules that only Keraunos's own code imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_BELOW: Mapping[str, str] = {
    "bigdl": """
        dataset dataset.base dataset.mnist dataset.movielens dataset.news20 dataset.sentence dataset.transformer
        models models.lenet models.lenet.lenet5 models.lenet.utils
        nn nn.criterion nn.initialization_method nn.layer optim optim.optimizer
        transform transform.vision transform.vision.image util util.common util.engine version""",
    "elephas": """
        asynch_spark_model enums enums.frequency enums.modes hyperparam ml ml.adapter ml.params ml_model mllib
        mllib.adapter optimizers parameter parameter.client parameter.factory parameter.server spark_flask_model
        spark_model utils utils.functional_utils utils.model_utils utils.rdd_utils utils.serialization""",
    "hyperas": "distributions ensemble optim",
    "hyperopt": "base rand tpe",
    "paddle": """
        trainer trainer.config_parser trainer_config_helpers trainer_config_helpers.activations
        trainer_config_helpers.attrs trainer_config_helpers.data_sources trainer_config_helpers.evaluators
        trainer_config_helpers.layer_math trainer_config_helpers.layers trainer_config_helpers.networks
        trainer_config_helpers.optimizers trainer_config_helpers.poolings""",
    "trainer_config_helpers": """
        activations attrs data_sources evaluators layer_math layers networks optimizers poolings""",
    "sparkflow": """
        HogwildSparkModel graph_utils ml_util pipeline_util tensorflow_async tensorflow_model_loader""",
    "tensorspark": """
        core core.partitioner core.spark_session core.weight_combiner example example.mnist example.spark_mnist""",
    "core": "partitioner spark_session weight_combiner",
    "example": "mnist spark_mnist",
    "zoo": """
        common common.nncontext common.utils feature feature.common feature.image feature.image.imagePreprocessing
        feature.image.imageset models models.image models.image.imageclassification models.image.objectdetection
        orca orca.common pipeline pipeline.api pipeline.api.keras pipeline.api.keras.engine
        pipeline.api.keras.engine.topology pipeline.api.keras.layers pipeline.api.keras.layers.advanced_activations
        pipeline.api.keras.layers.convolutional pipeline.api.keras.layers.convolutional_recurrent
        pipeline.api.keras.layers.core pipeline.api.keras.layers.embeddings pipeline.api.keras.layers.local
        pipeline.api.keras.layers.noise pipeline.api.keras.layers.normalization pipeline.api.keras.layers.pooling
        pipeline.api.keras.layers.recurrent pipeline.api.keras.layers.self_attention pipeline.api.keras.layers.torch
        pipeline.api.keras.layers.wrappers pipeline.api.keras.metrics pipeline.api.keras.models
        pipeline.api.keras.objectives pipeline.api.keras.optimizers pipeline.api.keras.regularizers pipeline.api.net
        pipeline.api.net.graph_net pipeline.api.net.net_load pipeline.nnframes pipeline.nnframes.nn_classifier
        pipeline.nnframes.nn_image_reader pipeline.nnframes.nn_image_schema tfpark tfpark.estimator tfpark.gan
        tfpark.gan.gan_estimator tfpark.model tfpark.tf_dataset tfpark.tf_optimizer tfpark.tf_predictor tfpark.tfnet
        tfpark.zoo_optimizer util util.engine util.nest util.tf util.triggers util.utils""",
}


def modules_below(package: str) -> Sequence[str] | None:
    """Returns the whole names of the modules directly in a package; `None` if no system has the package."""
    root, _, rest = package.partition(".")
    if root not in _BELOW:
        return None
    names = _BELOW[root].split()
    return [f"{root}.{name}" for name in names if name.rpartition(".")[0] == rest]


def all_modules() -> Sequence[str]:
    """Returns the whole names of all of them."""
    return [f"{root}.{name}" for root, names in _BELOW.items() for name in names.split()]
