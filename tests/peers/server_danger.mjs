// A server on the TypeScript SDK with a tool that must not run: server_danger.mjs LEDGER
import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { server } = new McpServer({ name: "peers-danger", version: "1.0.0" }, { capabilities: { tools: {} } });
server.onerror = () => {};
const tool = (name) => ({ name, inputSchema: { type: "object" } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool("danger"), tool("safe")] }));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  if (params.name === "danger") appendFileSync(process.argv[2], `${params.arguments?.case ?? "?"}\n`);
  return { content: [{ type: "text", text: params.name }] };
});
await server.connect(new StdioServerTransport());
