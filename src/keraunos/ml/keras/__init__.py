"""What is Keras's own of estimators and fitted models. Runs on the driver; Keras is imported when it is used."""
