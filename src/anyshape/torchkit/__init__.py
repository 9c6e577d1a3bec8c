"""Every private name of torch that anyshape touches, feature-detected. Written for torch 2.13."""
