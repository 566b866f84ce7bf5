"""What people use today instead of our kernels: torch functions with the kernels' own arguments.

One module for each kernel family, one function for each kernel, of the same name; each is timed as
it stands and under torch.compile. ``PUBLIC`` maps a kernel to other implementations by name.
A kernel without a function here is timed against its floor alone.
"""
