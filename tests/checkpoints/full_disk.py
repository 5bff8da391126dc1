"""A process whose files may not become large, as on a full disk. A program of its own: the limit is its process's."""

import json
import logging
import resource
import sys
from pathlib import Path

import numpy as np

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.checkpoints.writer import CheckpointWriter

LIMIT = 1 << 20


def sized(number, count):
    return Checkpoint(number, {}, {"small": [np.arange(10)], "parameters": [np.zeros(count, np.float32)]})


def main(folder):
    warnings = []
    noting = logging.Handler(logging.WARNING)
    noting.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger().addHandler(noting)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, resource.RLIM_INFINITY))
    store = CheckpointStore(LocalFolder(folder))
    found = []
    with CheckpointWriter(store) as writer:
        for number, count in enumerate([100, LIMIT, LIMIT // 2, LIMIT // 8], 1):
            writer.submit(sized(number, count))
            writer.flush()
            found.append([store.latest().number, sorted(path.name for path in folder.iterdir())])
    print(json.dumps({"written": writer.written, "failures": writer.failures, "found": found, "warnings": warnings}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
