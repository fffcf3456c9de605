"""Setting up SearXNG, and running one beside the server."""
