"""The pure half: rules and templates become a plan, without a cluster."""
