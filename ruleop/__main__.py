"""`python -m ruleop`, the same as `ruleop`."""

from ruleop.cli import main

main()
