"""The `keraunos` command. Runs on the driver.

Parses the arguments and selects the command. A command's module is imported only when the command is used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import keraunos
from keraunos.backends import BACKENDS
from keraunos.compat.run_unchanged.systems import OLD_KERAS, SYSTEMS, TODAYS_KERAS
from keraunos.errors import KeraunosError
from keraunos.job.exchange_plan import PRESETS

FAILED = 1
CANNOT_START = 2
INTERRUPTED = 130

# The options of `submit` and `shell` that do not belong to Spark; `--help` describes the command, not spark-submit.
OURS = ("--as", "--keras", "--help", "-h")

EXAMPLES = """\
examples:
  keraunos demo
  keraunos demo --exchange averaging --epochs 20
  keraunos demo --backend tensorflow --save /tmp/digits
  keraunos demo --workers 4 --master 'local[4]'
  keraunos run --as sparkflow program.py --rows 1000
  keraunos submit --as zoo --master yarn --num-executors 4 program.py
  keraunos shell --as tensorspark --deploy-mode=client
  keraunos resume /tmp/checkpoints
  keraunos resume --yes /tmp/checkpoints -- --epochs 20
  keraunos notebook --as paddle
  keraunos paddle summary config.py --config-args layers=2

exit codes:
  0  success
  1  a result is wrong
  2  something is missing, or an argument is wrong
  130  interrupted by Ctrl-C
  `run`, `submit` and `resume` return the exit code of the program
"""

DEMO = """\
Trains a Keras classifier on the handwritten digits that come with Keraunos,
inside a spark.ml Pipeline, on a local Spark. Prints the accuracy on test rows,
saves the fitted pipeline, loads it in a new process and compares the
predictions.
"""

RUN = """\
Runs a Python program with `spark`, `sc` and `sqlContext` defined. With --as, the
program's imports of elephas, paddle, sparkflow, tensorspark, or zoo and bigdl find
Keraunos, and `tensorflow` is TensorFlow 1.x. This also applies to the modules beside
the program and to its functions on executors. Spark runs on this machine, on all
cores (at least 2), unless spark-defaults.conf, MASTER, PYSPARK_SUBMIT_ARGS or the
program selects another master.
"""

SUBMIT = """\
Submits a program to a cluster. The program runs there as with `keraunos run`. All
options but --as and --keras are those of spark-submit. Put them before the program.
"""

SHELL = """\
Starts the pyspark shell, in which an older system's modules can be imported. All
options but --as and --keras are those of pyspark.
"""

NOTEBOOK = """\
Opens JupyterLab in the browser. Every Python notebook has `spark`, `sc` and
`sqlContext`, accepts cells that begin with %pyspark, and shows the curves of a fit
while it runs. The server listens on this machine only and requires its token. Its
settings are removed when it ends; the notebooks remain. JupyterLab is installed by
`pip install 'keraunos[notebook]'`.
"""

RESUME = """\
Runs the program again whose `fit` saved its training in a checkpointDir: with
the same command, in the same folder. Its fit resumes from the last checkpoint.

The command is shown and needs your confirmation; in a script, use --yes. DIR and
the file program.json in it must belong to you, and nobody else may be able to write
to them, because the file decides what is run. Values of arguments that look like
secrets (--token, --password) are not stored: give all of the program's arguments
again after `--`.
"""

PADDLE_SUMMARY = """\
Parses a configuration file of Paddle and prints its layers, their sizes and
their parameters. Neither Spark nor a framework is loaded.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    own, passed = split_command_line(given)
    options = command_parser().parse_args(own)
    options.passed = passed
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


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser for the arguments that `split_command_line` returns first."""
    parser = argparse.ArgumentParser(
        prog="keraunos",
        description="Deep learning on Apache Spark: any compiled Keras model as a spark.ml estimator.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"keraunos {keraunos.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_run(commands)
    rest = "[spark-submit options] program.py [argument ...]"
    _add_spark_command(commands, "submit", rest, "submit such a program to a cluster", SUBMIT, _submit)
    _add_spark_command(commands, "shell", "[pyspark options]", "the pyspark shell for such programs", SHELL, _shell)
    _add_resume(commands)
    _add_notebook(commands)
    _add_paddle(commands)
    return parser


def split_command_line(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Returns the arguments for this command, and those to pass unchanged to Spark and the program."""
    if not arguments or arguments[0] not in ("submit", "shell"):
        return arguments, []
    from keraunos.cli.spark_options import SparkCommandLine

    line = SparkCommandLine.parse(arguments[1:])
    ours = [part for name, value in line.options if name in OURS for part in (name, value) if part is not None]
    rest = line
    for name in OURS:
        rest = rest.without(name)
    script = [line.script] if line.script else []
    return [arguments[0], *ours], [*rest.words(), *script, *line.arguments]


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="train on a local Spark, score, save, load in a new process and compare",
        description=DEMO,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--workers", type=_positive, default=2, metavar="N", help="workers that train (default: 2)")
    demo.add_argument("--epochs", type=_positive, metavar="N", help="passes over the rows (default: 12)")
    demo.add_argument(
        "--batch-size", type=_positive, default=16, metavar="N", help="rows per worker per step (default: 16)"
    )
    demo.add_argument("--backend", choices=BACKENDS, help="the Keras backend (default: the first that is installed)")
    demo.add_argument(
        "--exchange",
        choices=list(PRESETS),
        metavar="PLAN",
        default="allreduce",
        help=f"how workers share parameters: {', '.join(PRESETS)} (default: allreduce)",
    )
    demo.add_argument("--master", metavar="URL", help="the Spark master (default: local, one core per worker)")
    demo.add_argument("--save", metavar="PATH", help="where to save the fitted pipeline (default: a temporary folder)")
    demo.add_argument("--verbose", action="store_true", help="show Spark's log, and tracebacks of errors")
    demo.set_defaults(run=_demo)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help=f"run a program of an older system unchanged: {', '.join(SYSTEMS)}",
        description=RUN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_system(run)
    _add_keras(run)
    run.add_argument("script", metavar="program.py", help="the program")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments, in sys.argv")
    run.set_defaults(run=_run, verbose=False)


def _add_spark_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    rest: str,
    summary: str,
    description: str,
    function: Callable[[argparse.Namespace], int],
) -> None:
    command = commands.add_parser(
        name,
        usage=f"keraunos {name} [-h] [--as SYSTEM] [--keras N]\n       {rest}",
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_system(command)
    _add_keras(command)
    command.set_defaults(run=function, verbose=False)


def _add_resume(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    resume = commands.add_parser(
        "resume",
        help="resume a training that was saved in a checkpointDir",
        description=RESUME,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    resume.add_argument("directory", metavar="DIR", help="the checkpointDir, on any Hadoop path")
    resume.add_argument("--yes", action="store_true", help="run the command without asking")
    resume.add_argument(
        "arguments", nargs="*", metavar="ARGUMENT", help="after `--`: replaces the arguments of the program"
    )
    resume.set_defaults(run=_resume, verbose=False)


def _add_notebook(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    notebook = commands.add_parser(
        "notebook",
        help="JupyterLab with a Spark session and live curves of a fit",
        description=NOTEBOOK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_system(notebook)
    notebook.add_argument(
        "--port", type=_positive, metavar="N", help="port to listen on (default: 8888 or the next free port)"
    )
    notebook.add_argument("--no-browser", action="store_true", help="print the address and do not open a browser")
    notebook.add_argument(
        "--allow-root", action="store_true", help="allow root to serve notebooks, which Jupyter refuses otherwise"
    )
    notebook.add_argument(
        "target", nargs="?", metavar="FILE.ipynb|FOLDER", help="what to open (default: the current folder)"
    )
    notebook.set_defaults(run=_notebook, verbose=False)


def _add_paddle(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    paddle = commands.add_parser("paddle", help="inspect a configuration of Paddle")
    actions = paddle.add_subparsers(title="commands", metavar="COMMAND", required=True)
    summary = actions.add_parser(
        "summary",
        help="print its layers, sizes and parameters",
        description=PADDLE_SUMMARY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    summary.add_argument("config", metavar="config.py", help="the configuration file")
    summary.add_argument(
        "--config-args", default="", metavar="K=V,...", help="the values that its get_config_arg returns"
    )
    summary.set_defaults(run=_paddle_summary, verbose=False)


def _add_system(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--as",
        dest="system",
        default="",
        choices=list(SYSTEMS),
        metavar="SYSTEM",
        help=f"the system that the program was written for: {', '.join(SYSTEMS)}",
    )


def _add_keras(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keras",
        default="",
        choices=[*OLD_KERAS, TODAYS_KERAS],
        metavar="N",
        help="with --as elephas or zoo, the Keras that it was written for: 0 to 3 (default: detected from its source)",
    )


def _run(options: argparse.Namespace) -> int:
    from keraunos.cli.run import run

    return run(options.system, options.script, options.arguments, options.keras)


def _submit(options: argparse.Namespace) -> int:
    from keraunos.cli.submit import submit

    submit(options.system, options.passed, options.keras)


def _shell(options: argparse.Namespace) -> int:
    from keraunos.cli.shell import shell

    shell(options.system, options.passed, options.keras)


def _resume(options: argparse.Namespace) -> int:
    from keraunos.cli.resume import resume

    return resume(options.directory, options.arguments, yes=options.yes)


def _notebook(options: argparse.Namespace) -> int:
    from keraunos.cli.notebook import notebook

    return notebook(
        options.system,
        options.target,
        port=options.port,
        browser=not options.no_browser,
        allow_root=options.allow_root,
    )


def _paddle_summary(options: argparse.Namespace) -> int:
    from keraunos.cli.paddle import print_summary

    return print_summary(options.config, options.config_args)


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
