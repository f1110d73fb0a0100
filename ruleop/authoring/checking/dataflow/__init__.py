"""The fields of children into which data of custom resources and Secrets goes."""
