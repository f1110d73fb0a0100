"""Children of which an object is made once for each run: by request, or by a schedule."""
