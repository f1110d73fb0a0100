"""Controllers of pods, Services, volumes, namespaces and events."""
