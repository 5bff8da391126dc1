"""Every load of the front-end for Analytics Zoo, on hostile files in a folder; prints what each of them said."""

import json
import sys
from pathlib import Path

import tensorflow as tf

from keraunos.compat.zoo import frozen_graph
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet
from keraunos.compat.zoo.tfpark.model import KerasModel
from keraunos.errors import KeraunosError
from keraunos.learners.keras_archive import from_archive
from tests.security import malicious_archives, malicious_graphs


def said(read):
    """The error of a load."""
    try:
        read()
    except KeraunosError as error:
        return str(error)
    return "nothing"


def main():
    """Load everything."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    marker = folder / "marker"
    found = {
        "net": said(lambda: KerasNet.load(str(folder / "model.keras"))),
        "keras": said(lambda: KerasModel.load_model(str(folder / "model.keras"))),
        "h5": said(lambda: KerasModel.load_model(str(folder / "model.h5"))),
        "tfnet": said(lambda: from_archive(net_archive(marker))),
    }
    tf.compat.v1.disable_eager_execution()
    (folder / "saved").mkdir()
    found |= {
        "keras2 keras": said(lambda: KerasModel.load_model(str(folder / "model.keras"))),
        "keras2 h5": said(lambda: KerasModel.load_model(str(folder / "model.h5"))),
        "keras2 lambda": said(lambda: KerasModel.load_model(str(folder / "lambda.h5"))),
        "keras2 folder": said(lambda: KerasModel.load_model(str(folder / "saved"))),
    }
    print(json.dumps(found))


def net_archive(marker):
    """A model with a layer that holds a graph that writes a file."""
    graph = malicious_graphs.frozen(marker, "operation")
    net = frozen_graph.FrozenGraph(graph.SerializeToString(), ("x:0",), ("out:0",))
    layer = {"name": "run", "trainable": False, "dtype": "float32", "graph": net.to_json()}
    config = malicious_archives.layer("keraunos.compat.zoo.tfpark.tfnet", "TFNet", layer)
    return malicious_archives.archive(
        malicious_archives.sequential({**config, "registered_name": "keraunos.zoo>TFNet"})
    )


if __name__ == "__main__":
    main()
