"""What every way of sharing parameters promises, on JAX."""

import os

from tests.conformance.exchange_suite import ExchangeSuite

if os.environ["KERAS_BACKEND"] == "jax":

    class TestExchangeOnJax(ExchangeSuite):
        pass
