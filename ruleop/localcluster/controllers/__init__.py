"""The controllers that make objects live: workloads, volumes, garbage collection, namespaces."""
