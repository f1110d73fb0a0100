"""HTTP/1.1 and TLS to one server: connections, their pool, one request, one response.

Knows nothing of Kubernetes but where its API server is and who asks (`access`).
"""
