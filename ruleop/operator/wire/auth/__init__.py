"""Credentials: from a kubeconfig, an exec plugin, or the service account of a pod."""
