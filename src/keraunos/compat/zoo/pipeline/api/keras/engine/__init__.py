"""`zoo.pipeline.api.keras.engine`: what layers and models begin with."""
