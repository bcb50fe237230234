// The TypeScript client of tests/peers/run: client_ts.mjs SCENARIO SCRATCH -- CMD...
// Prints one JSON line a step, then the events in the order they were seen.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const events = [];
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

async function step(name, run) {
  try {
    say({ step: name, result: await run() });
  } catch (error) {
    say({ step: name, error: { name: error.name, code: error.code, message: error.message, data: error.data } });
  }
}

// Resolves when `seen` holds for the events so far; the driver bounds the whole run.
async function until(seen) {
  while (!seen()) await new Promise((resolve) => setTimeout(resolve, 10));
}

function connectable() {
  const client = new Client(
    { name: "peers-ts", version: "1.0.0" },
    { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
  );
  client.fallbackNotificationHandler = async (notification) => void events.push({ notification });
  client.onerror = (error) => {
    // The SDK forgets who wants progress as soon as it reads the answer. A report that came in
    // the same read as the answer lands here instead of in `onprogress`: the same event to us.
    const [late, report] = error.message.split("progress notification for an unknown token: ");
    const { progress, total } = report ? JSON.parse(report).params : {};
    events.push(report ? { progress: { progress, total } } : { onerror: late });
  };
  client.onclose = () => events.push({ onclose: true });
  client.setRequestHandler(CreateMessageRequestSchema, async ({ method, params }) => {
    events.push({ request: { method, params } });
    return { model: "none", role: "assistant", stopReason: "endTurn", content: { type: "text", text: "sampled → ü 🦀" } };
  });
  client.setRequestHandler(ElicitRequestSchema, async ({ method, params }) => {
    events.push({ request: { method, params } });
    if (params.mode === "url") return { action: "accept" };
    const interpretation = params.requestedSchema.properties.interpretation;
    return { action: "accept", content: interpretation ? { interpretation: "technical" } : { name: "Peer", integer: 7 } };
  });
  client.setRequestHandler(ListRootsRequestSchema, async ({ method }) => {
    events.push({ request: { method } });
    return { roots: [{ uri: "file:///peers/one", name: "one" }, { uri: "file:///peers/two" }] };
  });
  return client;
}

async function listTools(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const scenarios = {
  async everything(client) {
    const tool = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
    const progress = (p) => events.push({ progress: p });
    const reports = () => events.filter((e) => e.progress).length;
    const frames = (method) => events.filter((e) => e.notification?.method === method).length;
    // The server asks for the roots a moment after `initialized` and then logs: wait for both.
    await until(() => frames("notifications/message") >= 1);
    await step("tools/list", () => listTools(client));
    await step("setLevel", () => client.setLoggingLevel("debug"));
    await step("echo", () => tool("echo", { message: "hello \u2028 \\u0000 \ud83e\udd80 \"quoted\"" }));
    await step("echo invalid", () => tool("echo", { message: 7 }));
    await step("unknown tool", () => tool("no-such-tool", {}));
    await step("get-sum", () => tool("get-sum", { a: 0.1, b: 2e15 }));
    await step("structured", () => tool("get-structured-content", { location: "Chicago" }));
    await step("image", () => tool("get-tiny-image", {}));
    await step("links", () => tool("get-resource-links", { count: 3 }));
    await step("roots", () => tool("get-roots-list", {}));
    await step("long", () => tool("trigger-long-running-operation", { duration: 1, steps: 4 }, { onprogress: progress }));
    await until(() => reports() >= 4);
    await step("sampling", () => tool("trigger-sampling-request", { prompt: "say something", maxTokens: 10 }));
    await step("elicitation", () => tool("trigger-elicitation-request", {}));
    const url = { url: "https://example.com/x", message: "open", elicitationId: "fixed" };
    // The server's own -32042: it must arrive as the server wrote it.
    await step("url error", () => tool("trigger-url-elicitation", { ...url, errorPath: true }));
    await step("url request", () => tool("trigger-url-elicitation", url));
    await step("answers in reverse order", () =>
      Promise.all([1.5, 0.8, 0.1].map((duration) => tool("trigger-long-running-operation", { duration, steps: 1 }))));
    await step("task", async () => {
      const params = { name: "simulate-research-query", arguments: { topic: "rust", ambiguous: true }, task: { ttl: 60000 } };
      const created = await client.request({ method: "tools/call", params }, CreateTaskResultSchema);
      const taskId = created.task.taskId;
      const result = await client.request({ method: "tasks/result", params: { taskId } }, CallToolResultSchema);
      return { created, result };
    });
    await step("simulated logging on", () => tool("toggle-simulated-logging", {}));
    await step("simulated logging off", () => tool("toggle-simulated-logging", {}));
    await step("cancelled", async () => {
      const abort = new AbortController();
      const before = reports();
      const call = tool("trigger-long-running-operation", { duration: 2, steps: 4 },
        { onprogress: (p) => (progress(p), abort.abort("peers cancel")), signal: abort.signal });
      try {
        return await call;
      } finally {
        // The server goes on reporting after the cancellation; let it finish.
        await until(() => reports() >= before + 4);
      }
    });
    await step("resources/list", () => client.listResources());
    await step("templates", () => client.listResourceTemplates());
    await step("read text", () => client.readResource({ uri: "demo://resource/dynamic/text/1" }));
    await step("read blob", () => client.readResource({ uri: "demo://resource/dynamic/blob/2" }));
    await step("read file", () => client.readResource({ uri: "demo://resource/static/document/features.md" }));
    await step("read missing", () => client.readResource({ uri: "demo://resource/none" }));
    await step("subscribe", () => client.subscribeResource({ uri: "demo://resource/dynamic/text/1" }));
    await step("prompts/list", () => client.listPrompts());
    await step("prompts/get", () => client.getPrompt({ name: "args-prompt", arguments: { city: "Bern" } }));
    await step("complete", () => client.complete({
      ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" } }));
    await client.sendRootsListChanged();
    await until(() => events.filter((e) => e.request?.method === "roots/list").length >= 2);
    await step("ping", () => client.ping());
  },

  async filesystem(client, scratch) {
    const tool = (name, args) => client.callTool({ name, arguments: args });
    await step("tools/list", () => listTools(client));
    const line = "0123456789 äöü \u{1f980} \"\\ tab\t end\n";
    await step("write 3 MB", () => tool("write_file", { path: `${scratch}/three`, content: line.repeat(3e6 / 36) }));
    await step("read 12 MB", () => tool("read_text_file", { path: `${scratch}/twelve` }));
    await step("head", () => tool("read_text_file", { path: `${scratch}/twelve`, head: 2 }));
    await step("missing file", () => tool("read_text_file", { path: `${scratch}/none` }));
    await step("outside", () => tool("read_text_file", { path: "/etc/hostname" }));
    await step("invalid", () => tool("read_text_file", { path: 7 }));
    await step("edit", () => tool("edit_file", { path: `${scratch}/small`, edits: [{ oldText: "old", newText: "new" }] }));
    await step("list", () => tool("list_directory", { path: scratch }));
    await step("info", () => tool("get_file_info", { path: `${scratch}/small` }));
  },

  // The SDK's default read buffer is 10 MiB: it drops the connection in the middle of this answer.
  // What it says about the rest depends on how the pipe cuts it, so only the first error counts.
  async oversize(client, scratch) {
    client.onerror = (error) => events.some((e) => e.onerror) || events.push({ onerror: error.message });
    await step("read 12 MB", () => client.callTool({ name: "read_text_file", arguments: { path: `${scratch}/twelve` } }));
  },

  async memory(client) {
    const tool = (name, args) => client.callTool({ name, arguments: args });
    const entity = (name) => ({ name, entityType: "peer", observations: [`${name} was seen`] });
    await step("tools/list", () => listTools(client));
    await step("entities", () => tool("create_entities", { entities: ["a", "b", "ü"].map(entity) }));
    await step("relations", () => tool("create_relations", { relations: [{ from: "a", to: "ü", relationType: "knows" }] }));
    await step("observations", () => tool("add_observations", { observations: [{ entityName: "a", contents: ["again"] }] }));
    await step("observations of nobody", () => tool("add_observations", { observations: [{ entityName: "z", contents: [] }] }));
    await step("search", () => tool("search_nodes", { query: "again" }));
    await step("delete", () => tool("delete_entities", { entityNames: ["b"] }));
    await step("graph", () => tool("read_graph", {}));
  },

  // Behind a policy that denies `add` and lets `fail` through once.
  async refused(client) {
    const tool = (name, args) => client.callTool({ name, arguments: args });
    await step("tools/list", () => listTools(client));
    await step("denied", () => tool("add", { a: 1, b: 2 }));
    await step("allowed", () => tool("fail", { why: "once" }));
    await step("limited", () => tool("fail", { why: "twice" }));
    await step("pending", () => tool("roots", {}));
    await step("ping", () => client.ping());
  },

  async stubborn(client) {
    await step("add", () => client.callTool({ name: "add", arguments: { a: 1, b: 2 } }));
  },
};

const [name, scratch, , command, ...args] = process.argv.slice(2);
const client = connectable();
const buffer = name === "oversize" ? {} : { maxBufferSize: 64 * 1024 * 1024 };
const transport = new StdioClientTransport({ command, args, stderr: "inherit", ...buffer });
await client.connect(transport);
say({ server: client.getServerVersion(), capabilities: client.getServerCapabilities(), instructions: client.getInstructions() });
await scenarios[name](client, scratch);
// Closing may or may not see the server's end, so the events are told first.
say({ events });
await client.close();
