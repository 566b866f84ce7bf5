"""The programs around the perception model: training, inference, checkpoints, sources, reports."""
