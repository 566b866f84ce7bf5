"""Past bugs of the perception model."""
