"""What is checked before a rule is accepted: one file a check. Each knows the language and nothing of loading."""
