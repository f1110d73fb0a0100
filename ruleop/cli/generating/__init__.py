"""`ruleop generate`: one module for each kind of file."""
