"""An HTTP/1.1 server on asyncio and llhttp: requests in, responses and streams out."""
