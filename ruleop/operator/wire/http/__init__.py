"""HTTP/1.1 and TLS to one server: connections, their pool, one request, one response.

Independent of Kubernetes, except for `access`: the address of an API server and the credentials for it.
"""
