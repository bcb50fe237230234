"""A server on the 1.x Python SDK with a tool that must not run: server_danger.py LEDGER"""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("peers-danger")


@server.tool()
def danger(case: str = "?") -> str:
    with open(sys.argv[1], "a", encoding="utf-8") as ledger:
        ledger.write(f"{case}\n")
    return "done"


@server.tool()
def safe() -> str:
    return "safe"


server.run("stdio")
