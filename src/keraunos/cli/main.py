"""The `keraunos` command. Runs on the driver.

Only parses arguments and picks the command; a command's module is imported when it is called for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import keraunos
from keraunos.errors import KeraunosError
from keraunos.job.exchange_plan import PRESETS
from keraunos.job.training_job import BACKENDS

FAILED = 1
CANNOT_START = 2
INTERRUPTED = 130

EXAMPLES = """\
examples:
  keraunos demo
  keraunos demo --exchange averaging --epochs 20
  keraunos demo --backend tensorflow --save /tmp/digits
  keraunos demo --workers 4 --master 'local[4]'

exit codes:
  0  all went well
  1  a result is not as it should be
  2  something is missing or asked for wrongly
"""

DEMO = """\
Trains a Keras classifier on scikit-learn's handwritten digits inside a
spark.ml Pipeline, on a Spark that is started for the purpose. Prints the
accuracy on rows it has not seen, saves the fitted pipeline, loads it in a
new process and compares the predictions.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    except KeraunosError as error:
        if options.verbose:
            raise
        print(f"\nkeraunos: {error}", file=sys.stderr)
        return CANNOT_START


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="keraunos",
        description="Deep learning on Apache Spark: any compiled Keras model as a spark.ml estimator.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"keraunos {keraunos.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="train on a local Spark, score, save, load in a new process and compare",
        description=DEMO,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--workers", type=_positive, default=2, metavar="N", help="workers that train (default: 2)")
    demo.add_argument("--epochs", type=_positive, metavar="N", help="times to go through the rows (default: 12)")
    demo.add_argument(
        "--batch-size", type=_positive, default=16, metavar="N", help="rows a worker a step (default: 16)"
    )
    demo.add_argument("--backend", choices=BACKENDS, help="what runs the model (default: the first that is installed)")
    demo.add_argument(
        "--exchange",
        choices=list(PRESETS),
        metavar="PLAN",
        default="allreduce",
        help=f"how workers share parameters: {', '.join(PRESETS)} (default: allreduce)",
    )
    demo.add_argument("--master", metavar="URL", help="the Spark to use (default: local, a core for each worker)")
    demo.add_argument("--save", metavar="PATH", help="where to save the fitted pipeline (default: not kept)")
    demo.add_argument("--verbose", action="store_true", help="show Spark's log and the traces of errors")
    demo.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    from keraunos.cli.demo import DEFAULT_EPOCHS, Demo

    return Demo(
        workers=options.workers,
        epochs=options.epochs or DEFAULT_EPOCHS,
        batch_size=options.batch_size,
        backend=options.backend,
        exchange=options.exchange,
        master=options.master or f"local[{options.workers}]",
        save=options.save,
        verbose=options.verbose,
    ).run()


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, received {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
