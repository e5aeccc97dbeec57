"""The conformance kit of memories: its oracle, driver, suites, contracts, walks and reference, on `spec.engine`."""
