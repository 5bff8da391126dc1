"""SparkFlow on Keraunos: the package, module by module, that programs written for SparkFlow import."""
