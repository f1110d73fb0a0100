"""What earlier passes of a custom resource taught: its history, and what is kept for the plan of the status."""
