"""The client on the 2.x Python SDK, era negotiated: client2.py SCENARIO -- CMD...

Prints one JSON line a step, then the events in the order they were seen.
"""

import json
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import ListenNotSupportedError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import BaseModel

events = []


def plain(value):
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return [plain(item) for item in value] if isinstance(value, list) else value


def say(line):
    print(json.dumps(line), flush=True)


async def step(name, run, *args):
    try:
        say({"step": name, "result": plain(await run(*args))})
    except MCPError as error:
        say({"step": name, "error": plain(error.error)})
    except ListenNotSupportedError as error:
        say({"step": name, "error": type(error).__name__})


async def on_message(message):
    shown = type(message).__name__ if isinstance(message, Exception) else plain(message)
    events.append({"message": shown})


async def on_elicit(_, params):
    events.append({"elicit": plain(params)})
    return ElicitResult(action="accept", content={"colour": "grün", "count": 3})


async def on_sample(_, params):
    events.append({"sample": plain(params)})
    return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text="sampled 🦀"))


async def on_roots(_):
    events.append({"roots": True})
    return ListRootsResult(roots=[Root(uri="file:///peers/one"), Root(uri="file:///peers/two")])


async def on_progress(progress, total, message):
    events.append({"progress": [progress, total, message]})


async def all_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def cancelled(client):
    """Cancels a running call; the SDK tells the server."""
    seen = anyio.Event()

    async def progress(*_):
        seen.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: client.call_tool("wait", {}, progress_callback=progress))
        await seen.wait()
        group.cancel_scope.cancel()
    return await client.call_tool("add", {"a": 1, "b": 1})


async def listening(client):
    """A request that stays open while others come and go."""
    async with client.listen(tools_list_changed=True) as subscription:
        await client.call_tool("change", {})
        async for event in subscription:
            return type(event).__name__


async def general(client):
    await step("tools/list", all_tools, client)
    await step("add", client.call_tool, "add", {"a": 1.5, "b": -3})
    await step("add invalid", client.call_tool, "add", {"a": "x"})
    await step("unknown tool", client.call_tool, "none", {})
    await step("fail", client.call_tool, "fail", {"why": 'because "ü" \u2028'})
    await step("report", lambda: client.call_tool("report", {"steps": 3}, progress_callback=on_progress))
    await step("ask", client.call_tool, "ask", {})
    await step("sample", client.call_tool, "sample", {"prompt": "p"})
    await step("roots", client.call_tool, "roots", {})
    await step("cancelled", cancelled, client)
    await step("listening", listening, client)
    await step("resources", client.list_resources)
    await step("read", client.read_resource, "peers://note")
    await step("read missing", client.read_resource, "peers://none")
    await step("prompts", client.list_prompts)
    await step("prompt", client.get_prompt, "greet", {"name": "Peer"})


async def refused(client):
    """Behind a policy that denies `add` and lets `fail` through once."""
    await step("tools/list", all_tools, client)
    await step("denied", client.call_tool, "add", {"a": 1, "b": 2})
    await step("allowed", client.call_tool, "fail", {"why": "once"})
    await step("limited", client.call_tool, "fail", {"why": "twice"})
    await step("pending", client.call_tool, "roots", {})
    await step("prompts", client.list_prompts)


async def brief(client):
    await step("add", client.call_tool, "add", {"a": 1, "b": 2})


async def main():
    scenario = {"general": general, "brief": brief, "refused": refused}[sys.argv[1]]
    command, *args = sys.argv[3:]
    async with Client(
        StdioServerParameters(command=command, args=args),
        sampling_callback=on_sample,
        elicitation_callback=on_elicit,
        list_roots_callback=on_roots,
        message_handler=on_message,
        log_level="debug",
    ) as client:
        say({"era": client.protocol_version, "server": plain(client.server_info)})
        await scenario(client)
    say({"events": events})


anyio.run(main)
