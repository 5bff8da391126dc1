"""Where Paddle's own package keeps the configuration language: `paddle.trainer.config_parser`."""
