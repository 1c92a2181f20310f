//! Plans, runs and analyses measurements of broadcasts.
