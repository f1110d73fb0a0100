"""The files that install an operator: manifests, a Helm chart, a bundle, an image, roles and monitoring."""
