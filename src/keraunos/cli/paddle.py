"""`keraunos paddle summary`: prints the layers of a Paddle configuration. Runs on the driver."""

from __future__ import annotations


def print_summary(config_file: str, config_args: str) -> int:
    """Print the layers, sizes and parameters of a configuration file. Returns the exit code."""
    from keraunos.compat.paddle.config_parser import parse_config
    from keraunos.compat.paddle.summary import summary

    print(summary(parse_config(config_file, config_args)))
    return 0
