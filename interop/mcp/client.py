"""An MCP client in Python, as client.mjs is one in JavaScript. Its first argument is the mode: auto or legacy."""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main(mode: str, *server: str) -> None:
    to = server[0] if len(server) == 1 else StdioServerParameters(command=server[0], args=list(server[1:]))
    async with Client(to, mode=mode) as client:
        tools = await client.list_tools()
        results = []
        for call in json.load(sys.stdin):
            try:  # the SDK checks structured content against the tool's schema
                r = await client.call_tool(call["tool"], call["args"])
            except (MCPError, RuntimeError) as e:
                results.append({"failure": repr(e)})
                continue
            results.append(
                {
                    "texts": [c.text for c in r.content],
                    "structured": r.structured_content,
                    "refused": bool(r.is_error),
                }
            )
        listed = [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in tools.tools]
        print(json.dumps({"name": client.server_info.name, "tools": listed, "results": results}))


asyncio.run(main(*sys.argv[1:]))
