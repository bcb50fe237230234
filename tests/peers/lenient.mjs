// A server that executes whatever it can make a call of: lenient.mjs LEDGER
// The ways are those of Node programs: readline's line ends, JSON.parse, objects that are merged,
// methods looked up in a table. An executed `danger` is a row of the ledger.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const ledger = process.argv[2];
let executed = new Set();

function run(message) {
  if (Array.isArray(message)) return message.forEach(run);
  if (!message || typeof message !== "object") return;
  const merged = Object.assign({}, message);
  for (const key of Object.keys(message)) merged[key.toLowerCase().split("\0")[0].trim()] ??= message[key];
  // As a careless deep merge does it.
  if (Object.hasOwn(message, "__proto__")) Object.assign(merged, message["__proto__"]);
  const handlers = { "tools/call": call, tools_call: call };
  const method = handlers[merged.method] ? merged.method : String(merged.method).split("\0")[0].trim().toLowerCase();
  handlers[method]?.(merged);
}

function call(message) {
  const params = Array.isArray(message.params) ? { name: message.params[0], arguments: message.params[1] } : (message.params ?? {});
  const lowered = Object.fromEntries(Object.entries(params).map(([k, v]) => [k.toLowerCase(), v]));
  const name = String(lowered.name).trim().toLowerCase();
  if (name === "danger" && !executed.has(message)) {
    executed.add(message);
    appendFileSync(ledger, `${lowered.arguments?.case ?? "?"}\n`);
  }
  if (name === "safe") process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { content: [] } }) + "\n");
}

function parse(text) {
  const loose = text
    .replace(/^[\uFEFF\u0000\s]+/, "")
    .replace(/\/\*.*?\*\//g, "")
    .replace(/,(?=\s*[}\]])/g, "")
    .replaceAll("'", '"')
    .replace(/(?<=[:,[])\s*(-?Infinity|NaN|0x[0-9a-f]+|\+\d+|0\d+|\.\d+)(?=[,}\]])/g, "1");
  search: for (let from = 0; from < 4096; from += 1) {
    const starts = [loose.indexOf("{", from), loose.indexOf("[", from)].filter((at) => at >= 0);
    if (!starts.length) return;
    from = Math.min(...starts);
    // The longest text from here that parses.
    for (let end = loose.length; end > from; end = Math.max(loose.lastIndexOf("}", end - 1), loose.lastIndexOf("]", end - 1)) + 1) {
      try {
        run(JSON.parse(loose.slice(from, end)));
        from = end - 1;
        continue search;
      } catch {
        if (end <= from + 1 || loose.length - end > 400) break;
      }
      if (end === Math.max(loose.lastIndexOf("}", end - 1), loose.lastIndexOf("]", end - 1)) + 1) end -= 1;
    }
  }
}

const lines = createInterface({ input: process.stdin, crlfDelay: 0 });
lines.on("line", (line) => {
  executed = new Set();
  parse(line);
});
