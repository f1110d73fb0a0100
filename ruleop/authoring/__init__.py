"""The tools of the people who write rules: check, test, render, plan, explain, dev, init, generate."""
