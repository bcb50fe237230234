"""The client on the 1.x Python SDK: client1.py SCENARIO -- CMD...

Prints one JSON line a step, then the events in the order they were seen.
"""

import json
import os
import sys

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from pydantic import AnyUrl, BaseModel

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
    except McpError as error:
        say({"step": name, "error": plain(error.error)})


async def on_message(message):
    if isinstance(message, types.ServerNotification):
        events.append({"notification": plain(message.root)})
    elif isinstance(message, Exception):
        events.append({"exception": type(message).__name__})


async def on_elicit(_, params):
    events.append({"elicit": plain(params)})
    return types.ElicitResult(action="accept", content={"colour": "grün", "count": 3})


async def on_sample(_, params):
    events.append({"sample": plain(params)})
    return types.CreateMessageResult(
        role="assistant", model="none", content=types.TextContent(type="text", text="sampled 🦀")
    )


async def on_roots(_):
    events.append({"roots": True})
    return types.ListRootsResult(roots=[types.Root(uri="file:///peers/one"), types.Root(uri="file:///peers/two")])


async def on_progress(progress, total, message):
    events.append({"progress": [progress, total, message]})


async def all_tools(session):
    tools, cursor = [], None
    while True:
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.nextCursor
        if cursor is None:
            return tools


async def cancelled(session):
    """Cancels a running call by hand; whether the server still answers is its affair."""
    seen = anyio.Event()

    async def progress(*_):
        seen.set()

    request_id = session._request_id
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: session.call_tool("wait", {}, progress_callback=progress))
        await seen.wait()
        params = types.CancelledNotificationParams(requestId=request_id, reason="peers cancel")
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        group.cancel_scope.cancel()
    return await session.call_tool("add", {"a": 1, "b": 1})


async def general(session):
    await step("tools/list", all_tools, session)
    await step("add", session.call_tool, "add", {"a": 1.5, "b": -3})
    await step("add invalid", session.call_tool, "add", {"a": "x"})
    await step("unknown tool", session.call_tool, "none", {})
    await step("fail", session.call_tool, "fail", {"why": 'because "ü" \u2028'})
    await step("report", lambda: session.call_tool("report", {"steps": 3}, progress_callback=on_progress))
    await step("ask", session.call_tool, "ask", {})
    await step("sample", session.call_tool, "sample", {"prompt": "p"})
    await step("roots", session.call_tool, "roots", {})
    await step("cancelled", cancelled, session)
    await step("resources", session.list_resources)
    await step("read", session.read_resource, AnyUrl("peers://note"))
    await step("read missing", session.read_resource, AnyUrl("peers://none"))
    await step("prompts", session.list_prompts)
    await step("prompt", session.get_prompt, "greet", {"name": "Peer"})
    await step("ping", session.send_ping)


async def clock(session):
    await step("tools/list", all_tools, session)
    await step("now", session.call_tool, "get_current_time", {"timezone": "Asia/Tokyo"})
    convert = {"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "Asia/Kathmandu"}
    await step("convert", session.call_tool, "convert_time", convert)
    await step("bad zone", session.call_tool, "get_current_time", {"timezone": "Mars/Olympus"})


async def git(session):
    """Without PEERS_REPOSITORY there is none to look at, which the server says."""
    repository = os.environ.get("PEERS_REPOSITORY", "/nowhere")
    await step("tools/list", all_tools, session)
    await step("log", session.call_tool, "git_log", {"repo_path": repository, "max_count": 1})
    await step("status", session.call_tool, "git_status", {"repo_path": repository})


async def echo(session):
    await step("tools/list", all_tools, session)
    await step("echo", session.call_tool, "echo", {"text": "ü"})


async def refused(session):
    """Behind a policy that denies `add` and lets `fail` through once."""
    await step("tools/list", all_tools, session)
    await step("denied", session.call_tool, "add", {"a": 1, "b": 2})
    await step("allowed", session.call_tool, "fail", {"why": "once"})
    await step("limited", session.call_tool, "fail", {"why": "twice"})
    await step("pending", session.call_tool, "roots", {})
    await step("ping", session.send_ping)


async def brief(session):
    await step("add", session.call_tool, "add", {"a": 1, "b": 2})


async def main():
    scenario = {"general": general, "clock": clock, "brief": brief, "refused": refused, "git": git, "echo": echo}[sys.argv[1]]
    command, *args = sys.argv[3:]
    async with stdio_client(StdioServerParameters(command=command, args=args)) as streams:
        async with ClientSession(
            *streams,
            sampling_callback=on_sample,
            elicitation_callback=on_elicit,
            list_roots_callback=on_roots,
            message_handler=on_message,
        ) as session:
            await step("initialize", session.initialize)
            await scenario(session)
    say({"events": events})


anyio.run(main)
