"""A step after the transition that leaves a bucket as it was is an error, not a slow start."""

import torch

from trivet.impl.routing import RoutingRecord


class UnchangedBucketError(RuntimeError):
    """A step of phase 2 changed no weight of a bucket that has channels."""


class BucketWeights:
    """The weights of each channel before a step: its cell's rows and its own skip weight."""

    def __init__(self, weights: dict[str, torch.Tensor], record: RoutingRecord) -> None:
        self.record = record
        self.before = self._rows(weights).clone()

    def _rows(self, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """All weights of a channel side by side, (H, 2 H + 2), as bits."""
        channels = torch.arange(self.record.bucket_of.shape[0], device=self.record.bucket_of.device)
        own = weights["w_skip"][self.record.bucket_of.long(), channels]
        parts = [weights["W_in"], weights["W_rec"], weights["b"][:, None], own[:, None]]
        return torch.cat([part.detach() for part in parts], dim=1).view(torch.int32)

    def check(self, weights: dict[str, torch.Tensor], step: int) -> None:
        """Raise UnchangedBucketError, naming the bucket, where no bit of a bucket changed."""
        moved = (self._rows(weights) != self.before).any(dim=1)
        counts = torch.zeros_like(self.record.size)
        counts.index_add_(0, self.record.bucket_of.long(), moved.to(counts.dtype))
        still = ((counts == 0) & (self.record.size > 0)).nonzero().flatten().tolist()
        if still:
            raise UnchangedBucketError(
                f"step {step} left every weight of bucket {still[0]} unchanged, bit for bit: its "
                "outputs or gradients are cut off from the loss"
            )
