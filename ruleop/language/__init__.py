"""Rules and templates, and what can be known about them before they run."""
