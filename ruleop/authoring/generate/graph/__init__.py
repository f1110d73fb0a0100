"""The graph of rules, as text and as a picture."""
