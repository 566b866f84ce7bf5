"""The programs of the backtest: configurations, sources of events, runs, sweeps and results.

tree, config           YAML with line numbers, resolved into one value for each variant
synthetic, files, tape events from a seed, CSV or Parquet
sweep, checkpoint      running them, so that it can be killed at any time and go on
table, program         the result, and the commands
"""
