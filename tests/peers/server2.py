"""A server on the 2.x Python SDK: both eras, the tools of server1.py by the same names.

In the modern era ask, sample and roots answer `input_required` and are called again.
"""

from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("peers-2", instructions="a peer for tests", version="1.0.0")


class Answer(BaseModel):
    colour: str
    count: int = 1


class Sum(BaseModel):
    sum: float


def ask_colour() -> Elicit[Answer]:
    return Elicit("which colour?", Answer)


def ask_model(prompt: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return Sample([message], max_tokens=9)


def ask_roots() -> ListRoots:
    return ListRoots()


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
async def ask(answer: Annotated[Answer, Resolve(ask_colour)]) -> str:
    """Elicitation."""
    return answer.model_dump_json()


@server.tool()
async def sample(prompt: str, sampled: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Sampling."""
    return f"{prompt}: {sampled.content.text}"


@server.tool()
async def roots(listed: Annotated[ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    """Roots."""
    return [str(root.uri) for root in listed.roots]


@server.tool()
async def change(ctx: Context) -> str:
    """Tells subscribers that the list of tools changed."""
    await ctx.notify_tools_changed()
    return "changed"


@server.resource("peers://note")
def note() -> str:
    return "a note, ünïcode 🦀"


@server.prompt()
def greet(name: str) -> str:
    return f"greet {name}"


server.run("stdio")
