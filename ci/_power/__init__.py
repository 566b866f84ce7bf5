"""The workloads of `trivet.ci.power`: right and wrong kernels, emulated in NumPy and torch."""
