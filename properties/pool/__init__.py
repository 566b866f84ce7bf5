"""The attention pool: what its kernels promise."""

from trivet.properties.pool.attention import pool_attention_pool, pool_attention_pool_backward

__all__ = ["pool_attention_pool", "pool_attention_pool_backward"]
