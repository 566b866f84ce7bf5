"""Timing on a GPU: base and candidate interleaved in one process, and what the times say."""
