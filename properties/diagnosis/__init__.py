"""Counters read once at the end: what each kernel promises."""

from trivet.properties.diagnosis.streams import diagnosis_count, diagnosis_settle

__all__ = ["diagnosis_count", "diagnosis_settle"]
