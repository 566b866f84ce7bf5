"""Policy programs: what each kernel promises."""

from trivet.properties.policy.machine import policy_evaluate

__all__ = ["policy_evaluate"]
