"""A search for the most expensive pass: rules and custom resources that are generated, measured and mutated.

    make fuzz MINUTES=5 SEED=1 WORKERS=2
    make fuzz REPLAY=.fuzz/cases/NAME.yaml

It is not in `tests/`, because its results are times and memory, which differ between runs; what it finds becomes a
test. Genes of candidates are plain JSON, so a stopped search is resumed from its state in `.fuzz/`.
"""
