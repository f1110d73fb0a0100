"""The recording of passes, and their replay: what `ruleop run --record` writes, without values of Secrets."""
