"""The root of the tests: the plugins that all of them share."""

pytest_plugins = ["pytester", "tests.fast", "tests.leaks", "tests.paired"]
