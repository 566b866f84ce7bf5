"""The attention pool: one learned query over the states of a window, forward and backward.

attention_pool           softmax(q . X_t / sqrt(H)) weighted sum of the states
attention_pool_backward  its gradients
AttentionPool            attention_pool as an autograd function
"""

from trivet.impl.pool.attention import attention_pool, attention_pool_backward
from trivet.impl.pool.functions import AttentionPool

__all__ = ["AttentionPool", "attention_pool", "attention_pool_backward"]
