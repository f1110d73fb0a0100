"""Rules in a running operator: a process of their own loads them, at the start and when their files change."""
