"""Rule tests: cases in YAML that plan a custom resource and compare the result with what is expected."""
