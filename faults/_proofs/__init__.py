"""Proofs of waivers: each a function that raises where two ways to write a line differ.

They compute with NumPy in the kernels' own types, over every small size and many values.
"""
