"""A server on the 1.x Python SDK, with everything that travels from server to client.

With --stubborn it outlives the end of its input, with --deaf it ignores SIGTERM
too; either way it ends when its parent is gone.
"""

import os
import signal
import sys
import time

import anyio
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("peers-1", instructions="a peer for tests")


class Answer(BaseModel):
    colour: str
    count: int = 1


class Sum(BaseModel):
    sum: float


@server.tool()
def add(a: float, b: float) -> Sum:
    """Adds, with structured output."""
    return Sum(sum=a + b)


@server.tool()
def fail(why: str) -> str:
    """Always an error result."""
    raise ValueError(why)


@server.tool()
async def report(steps: int, ctx: Context) -> str:
    """Progress and log messages."""
    for at in range(steps):
        await ctx.report_progress(at + 1, steps, f"step {at + 1}")
        await ctx.info(f"did {at + 1}")
    return "reported"


@server.tool()
async def wait(ctx: Context) -> str:
    """Reports once, then runs until it is cancelled."""
    await ctx.report_progress(0, 1)
    await anyio.sleep_forever()
    return "unreachable"


@server.tool()
async def ask(ctx: Context) -> str:
    """Elicitation."""
    answer = await ctx.elicit("which colour?", Answer)
    return answer.model_dump_json()


@server.tool()
async def sample(prompt: str, ctx: Context) -> str:
    """Sampling."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    result = await ctx.session.create_message([message], max_tokens=9)
    return result.content.text


@server.tool()
async def roots(ctx: Context) -> list[str]:
    """Roots."""
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@server.resource("peers://note")
def note() -> str:
    return "a note, ünïcode 🦀"


@server.prompt()
def greet(name: str) -> str:
    return f"greet {name}"


@server._mcp_server.list_tools()
async def pages(request: types.ListToolsRequest) -> types.ListToolsResult:
    """Three tools a page; the SDK's own look-up passes no request and gets all."""
    tools = await server.list_tools()
    if request is None:
        return types.ListToolsResult(tools=tools)
    start = int(request.params.cursor or 0) if request.params else 0
    end = start + 3
    return types.ListToolsResult(tools=tools[start:end], nextCursor=str(end) if end < len(tools) else None)


def main():
    parent = os.getppid()
    if "--deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.run("stdio")
    while {"--stubborn", "--deaf"} & set(sys.argv) and os.getppid() == parent:
        time.sleep(0.1)


main()
