//! Measured parameters of a network, and the models that are made of them.
