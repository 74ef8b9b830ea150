"""The MCP server: the same operations as the REST API, over stdio (``manage.py mcp``) and HTTP (``/mcp/``)."""
