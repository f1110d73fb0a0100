#!/usr/bin/env python3
"""The control plane for people: build it, start a cluster to try things on, stop it. Needs no virtual environment."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from controlplane.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
