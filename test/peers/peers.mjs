// Reads views, one JSON object in a line, and answers each with a line: {"id", "violations": [{"by", "at", "what"}]}.
// A view has format, models (names that it is for, "" for one that is not known), messages, system, open (calls may wait for their results), and
// pipe, which gives it to the packages, too.
import { createInterface } from "node:readline";
import { asksOpenAI, isServed, pipe } from "./packages.mjs";
import { published } from "./published.mjs";
import * as requests from "./requests.mjs";

console.log = console.warn = console.error = () => {}; // the packages warn of what the checks find

const endpoints = {
  "openai-chat": requests.openAIChat, "openai-responses": requests.openAIResponses, anthropic: requests.anthropic,
  gemini: requests.gemini, mistral: requests.mistral, groq: requests.openAIChat,
};
const schemas = {
  "openai-chat": ["openai-chat", "openapi-chat"], "openai-responses": ["openai-responses", "openapi-responses"],
  anthropic: ["anthropic"], gemini: ["gemini"], mistral: ["mistral"], groq: ["groq"],
};

// dialect returns as what a view is checked: some models that are asked in OpenAI's format have a schema of their own.
function dialect({ format, model }) {
  if (format === "openai-chat" && /mistral/.test(model)) return "mistral";
  if (format === "openai-chat" && /^groq\//.test(model)) return "groq";
  return format;
}

// camel returns a content of Gemini with the names of its members as the package has them: the API takes both spellings.
function camel(node) {
  if (Array.isArray(node)) return node.map(camel);
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) =>
    [key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()), ["args", "response"].includes(key) ? value : camel(value)]));
}

// filled returns an item with the members that OpenAI's schemas require and its endpoint does not: the guide to images
// sends them without detail, and openai/codex sends reasoning and what the assistant said without ids.
function filled(item) {
  const content = Array.isArray(item.content) ? item.content.map((part) => filledPart(part)) : item.content;
  if (item.type === "reasoning") return { id: "rs_1", summary: [], ...item };
  if (item.role === "assistant" && Array.isArray(content)) return { id: "msg_1", status: "completed", type: "message", ...item, content };
  if (Array.isArray(item.output)) return { ...item, output: item.output.map(filledPart) };
  return content === undefined ? item : { ...item, content };
}

function filledPart(part) {
  if (part?.type === "input_image") return { detail: "auto", ...part };
  return part?.type === "output_text" ? { annotations: [], logprobs: [], ...part } : part;
}

// foreign are members and blocks that OpenAI's endpoint ignores (microsoft/agent-framework#2344) and others need back:
// DeepSeek, Qwen and vLLM, OpenRouter, LiteLLM, Mistral, Google. Only views for servers that are not strict have them.
const foreign = ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "cache_control", "prefix", "partial", "extra_content", "format"];
const foreignBlocks = ["video_url", "audio_url", "thinking"];

function withoutForeign(node) {
  if (Array.isArray(node)) return node.filter((each) => !foreignBlocks.includes(each?.type)).map(withoutForeign);
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).filter(([key]) => !foreign.includes(key)).map(([key, value]) =>
    [key, ["content", "tool_calls", "image_url", "file"].includes(key) ? withoutForeign(value) : value]));
}

// withoutNulls returns a content of Gemini without members that are null: in the JSON of protocol buffers, null is the
// same as no member. The arguments of a call and the response of a tool have nulls of their own.
function withoutNulls(node) {
  if (Array.isArray(node)) return node.map(withoutNulls);
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).filter(([, value]) => value !== null).map(([key, value]) =>
    [key, ["args", "response"].includes(key) ? value : withoutNulls(value)]));
}

// prepared returns a message without what the schema does not have, but the endpoint takes.
function prepared(as, message) {
  if (as === "gemini") return withoutNulls(camel(message));
  if (as === "openai-responses") return filled(message);
  return as === "openai-chat" ? withoutForeign(message) : message;
}

// kind returns what the checks see of a model in a format: a view that several models get is checked once for those of
// one kind.
function kind(format, model) {
  switch (format) {
    case "openai-chat": return `${dialect({ format, model })} ${asksOpenAI(model)}`;
    case "openai-responses": return "";
    case "anthropic": return `${requests.isBedrock(model)} ${requests.refusesPrefill(model)}`;
    case "gemini": return `${requests.wantsSignatures(model)}`;
  }
  return isServed(model) ? model : "";
}

async function checkAll(view) {
  const kinds = new Map(view.models.toReversed().map((model) => [kind(view.format, model), model]));
  const violations = [];
  for (const model of kinds.values()) {
    for (const found of await check({ ...view, model })) violations.push({ ...found, model });
  }
  return violations;
}

async function check(view) {
  const violations = [];
  const tell = (by, at, what) => violations.push({ by, at: String(at), what });
  const hold = (by, as, messages) => {
    const list = messages.map((message) => prepared(as, message));
    for (const name of schemas[as]) {
      for (const [i, message] of list.entries()) {
        const named = name === "openapi-responses" && message.type === "mcp_approval_response"; // it requires a member that it has no property of
        const wrong = published(name, named ? { request_id: "", ...message } : message);
        if (wrong) tell(`${by}, schema ${name}`, i + wrong.at, wrong.what);
      }
    }
    endpoints[as](as === "openai-responses" ? messages : list, view, (at, what) => tell(`${by}, endpoint ${as}`, at, what));
  };
  if (view.format !== "ai-sdk") hold("the view", dialect(view), view.messages);
  if (view.pipe || view.format === "ai-sdk") await pipe(view, tell, hold);
  return violations;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const view = JSON.parse(line);
  let violations;
  try {
    violations = await checkAll(view);
  } catch (error) {
    violations = [{ by: "peers", at: "", what: `${error.stack}`.slice(0, 600) }];
  }
  process.stdout.write(`${JSON.stringify({ id: view.id, violations })}\n`);
}
