// Holds requests to what the providers' endpoints refuse beyond their schemas. Each function takes the messages of a
// request and tells what is wrong. Where a rule comes from stands with it: an issue that quotes the answer, or a page
// of the provider's documentation.

// plain: anthropics/claude-code#4378, mcp-use/mcp-use#90 "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'".
const plain = (limit) => new RegExp(`^[a-zA-Z0-9_-]{1,${limit}}$`);
// ai.google.dev/api/caching#FunctionDeclaration: letters, digits, underscores, dots, colons and dashes.
const geminiName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
const images = ["image/jpeg", "image/png", "image/gif", "image/webp"]; // anthropic: media_type of Base64ImageSource
const isBlank = (said) => typeof said === "string" && said.trim() === "";
const text = JSON.stringify;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function blocksOf(message) {
  return typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content ?? [];
}

// anthropic: its endpoint joins messages of one role in a row; Bedrock's and older ones of Vertex do not.
export function anthropic(messages, { model, open }, tell) {
  if (!messages.length) return tell("", "empty list of messages"); // "messages: at least one message is required"
  // litellm#3371. What precedes a compaction is ignored, and need not be sent: docs/build-with-claude/compaction.
  const compacted = blocksOf(messages[0]).some(({ type, content }) => type === "compaction" && content);
  if (messages[0].role !== "user" && !compacted) tell(0, "the first message is not the user's");
  const turns = [];
  for (const [i, message] of messages.entries()) {
    if (turns.at(-1)?.role !== message.role) turns.push({ role: message.role, blocks: [], at: i });
    else if (isBedrock(model)) tell(i, "roles do not alternate"); // aws/bedrock: "roles must alternate"
    checkAnthropicMessage(message, i, i === messages.length - 1, model, tell);
    turns.at(-1).blocks.push(...blocksOf(message));
  }
  checkAnthropicTurns(turns, open, tell);
  const last = turns.at(-1);
  if (open && last.blocks.some((block) => block.type === "tool_use")) return; // it cannot be sent yet
  const paused = isServerCall(last.blocks.at(-1)); // docs: pause_turn
  if (last.role === "assistant" && refusesPrefill(model) && !paused) tell(last.at, "does not end with the user"); // "does not support assistant message prefill"
  if (last.role === "assistant" && /\s$/.test(last.blocks.at(-1)?.text ?? "")) tell(last.at, "ends in white space"); // zed#29870
  const marks = messages.flatMap(blocksOf).filter((block) => block?.cache_control);
  if (marks.length > 4) tell("", `${marks.length} blocks have cache_control`); // cline#2393
}

export const isBedrock = (model) => /(^|\.)anthropic\.claude/.test(model);
// Servers of Anthropic's format whose thinking has no signature; some want it in each message of the assistant: hermes-agent#17510.
export const isUnsigned = (model) => /deepseek|kimi|moonshot|mimo|qwen|glm|minimax/.test(model);
export const refusesPrefill = (model) => /claude-(opus|sonnet)-(4-[6-9]|[5-9])/.test(model);

function checkAnthropicMessage(message, i, last, model, tell) {
  const blocks = last && message.role === "assistant" && message.content === "" ? [] : blocksOf(message);
  if (!blocks.length && !(last && message.role === "assistant")) tell(i, "empty content"); // "all messages must have non-empty content"
  for (const [n, block] of blocks.entries()) checkAnthropicBlock(block, message.role, model, `${i}/content/${n}`, tell);
  const thinks = /deepseek-(reasoner|v4)/.test(model) && message.role === "assistant";
  // Nobody has reported what the server says to an encrypted thought alone: it counts as one here.
  if (thinks && !blocks.some((block) => /^(redacted_)?thinking$/.test(block.type))) tell(i, "no thinking"); // "content[].thinking must be passed back"
}

function checkAnthropicBlock(block, role, model, at, tell) {
  if (block.type === "text" && isBlank(block.text)) tell(at, "a text of white space"); // "must contain non-whitespace text"
  if (block.type === "thinking" && !block.signature && !isUnsigned(model)) tell(at, "thinking without signature");
  if (/thinking$/.test(block.type) && block.cache_control) tell(at, "cache_control on thinking"); // docs: prompt caching
  if (block.type === "tool_use" && !plain(128).test(block.name)) tell(at, `the tool's name ${text(block.name)}`);
  if (block.type === "tool_use" && !plain(64).test(block.id)) tell(at, `the call's id ${text(block.id)}`);
  if (block.type === "tool_use" && !isObject(block.input)) tell(at, "an input that is not an object"); // "Input should be a valid dictionary"
  if (block.type === "tool_use" && role !== "assistant") tell(at, "a call that is not the assistant's");
  if (block.type === "tool_result" && role !== "user") tell(at, "a result that is not the user's");
  if (block.type === "image" && block.source?.type === "base64" && !images.includes(block.source.media_type)) tell(at, "the type of the image");
  for (const [n, inner] of (block.type === "tool_result" && Array.isArray(block.content) ? block.content : []).entries()) {
    if (inner.type === "text" && inner.text === "") tell(`${at}/content/${n}`, "an empty text");
  }
}

function checkAnthropicTurns(turns, open, tell) {
  const seen = new Set();
  let asked = [];
  for (const [n, turn] of turns.entries()) {
    const results = turn.blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
    const waits = open && n >= turns.length - 1 && turn.role === "user" && results.length === turn.blocks.length;
    for (const id of asked) if (!results.includes(id) && !waits) tell(turn.at, `no result of ${text(id)}`);
    for (const [k, id] of results.entries()) {
      if (!asked.includes(id) || results.indexOf(id) !== k) tell(turn.at, `the result of ${text(id)} answers no call`);
    }
    if (turn.blocks.findLastIndex((b) => b.type === "tool_result") >= results.length) tell(turn.at, "a result behind other content");
    const calls = turn.blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    for (const id of calls) if (seen.has(id)) tell(turn.at, `the id ${text(id)} twice`); else seen.add(id);
    asked = turn.role === "assistant" ? calls : [];
  }
  if (asked.length && !open) tell(turns.at(-1).at, `no result of ${text(asked.join())}`);
  checkServerTools(turns, tell);
}

const isServerCall = (block) => /^(server|mcp)_tool_use$/.test(block?.type);

// checkServerTools: "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it"
// (claude-code#62577). Code that runs at the server may call tools of the client before it ends.
function checkServerTools(turns, tell) {
  let waiting = new Map();
  for (const turn of turns) {
    if (turn.role === "user" && turn.blocks.some((block) => block.type !== "tool_result")) {
      for (const [id, at] of waiting) tell(at, `no result of the server's tool ${text(id)}`);
      waiting = new Map();
    }
    for (const block of turn.role === "assistant" ? turn.blocks : []) {
      if (isServerCall(block)) waiting.set(block.id, turn.at);
      if (!/_tool_result$/.test(block.type)) continue;
      if (!waiting.delete(block.tool_use_id)) tell(turn.at, `the result of the server's tool ${text(block.tool_use_id)} answers no call`);
    }
  }
}

// LiteLLM puts the signature of a Gemini call into its id, and reads it there: litellm#16895.
const idLimit = (model) => /gemini/.test(model ?? "") ? Infinity : 40;

export function openAIChat(messages, { open, model, limit = idLimit(model), name = plain(64) }, tell) {
  if (!messages.length) return tell("", "empty list of messages"); // "[] is too short - 'messages'"
  let waiting = [];
  for (const [i, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!waiting.includes(message.tool_call_id)) tell(i, "a result that answers no call");
      waiting.splice(waiting.indexOf(message.tool_call_id), 1);
    } else if (waiting.length) {
      tell(i, `no result of ${text(waiting.join())}`);
      waiting = [];
    }
    for (const [n, call] of (message.tool_calls ?? []).entries()) {
      const called = call.function ?? call.custom;
      if (!(typeof call.id === "string" && call.id.length <= limit)) tell(`${i}/tool_calls/${n}`, `the call's id ${text(call.id)}`);
      if (!name.test(called?.name)) tell(`${i}/tool_calls/${n}`, `the tool's name ${text(called?.name)}`); // mcp-use#90
      waiting.push(call.id);
    }
    if (message.function_call && !name.test(message.function_call.name)) tell(i, `the function's name ${text(message.function_call.name)}`);
    checkChatContent(message, i, tell);
  }
  if (waiting.length && !open) tell(messages.length - 1, `no result of ${text(waiting.join())}`);
}

function checkChatContent(message, i, tell) {
  if (message.tool_calls?.length === 0) tell(i, "tool_calls is empty"); // openai-node#1341
  if (Array.isArray(message.content) && message.content.length === 0) tell(i, "content is empty");
  const calls = message.tool_calls?.length || message.function_call || message.audio || message.refusal;
  if (message.content == null && !(message.role === "assistant" && calls)) tell(i, "no content"); // "expected a string, got null"
  // "string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'"
  if ("name" in message && message.role !== "function" && !/^[^\s<|\\/>]+$/.test(message.name)) tell(i, `the speaker's name ${text(message.name)}`);
}

// mistral: litellm#8404, "Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9".
export function mistral(messages, options, tell) {
  openAIChat(messages, options, tell);
  for (const [i, message] of messages.entries()) {
    for (const call of message.tool_calls ?? []) if (!/^[a-zA-Z0-9]{9}$/.test(call.id)) tell(i, `the call's id ${text(call.id)}`);
  }
  if (messages.at(-1)?.role === "assistant" && !messages.at(-1).prefix && !options.open) tell(messages.length - 1, "the last role is assistant");
}

// prefixes: "Expected an ID that begins with 'msg'" (Wei-Shaw/sub2api#3981), and so on for other types.
const prefixes = {
  message: "msg", function_call: "fc", reasoning: "rs", custom_tool_call: "ctc", web_search_call: "ws", file_search_call: "fs",
  computer_call: "cu", code_interpreter_call: "ci", image_generation_call: "ig", mcp_call: "mcp", mcp_list_tools: "mcpl",
};

export function openAIResponses(items, { open }, tell) {
  if (!items.length) return tell("", "empty list of items");
  const waiting = new Map();
  const ids = new Set();
  for (const [i, item] of items.entries()) {
    const type = item.type ?? "message";
    if (typeof item.id === "string" && type !== "item_reference") {
      const prefix = prefixes[type];
      if (prefix && !item.id.startsWith(prefix)) tell(i, `the id ${text(item.id)} does not begin with ${prefix}`);
      if (ids.has(item.id)) tell(i, `the id ${text(item.id)} twice`); // "Duplicate item found with id" (pi#5149)
      ids.add(item.id);
    }
    if (/_call_output$/.test(type)) {
      if (!waiting.delete(item.call_id)) tell(i, `the output of ${text(item.call_id)} answers no call`);
    } else if (/^(function|custom_tool|computer|local_shell|shell|apply_patch)_call$/.test(type)) {
      if (!(item.call_id?.length >= 1 && item.call_id.length <= 64)) tell(i, `the call_id ${text(item.call_id)}`);
      if (/^(function|custom_tool)_call$/.test(type) && !plain(128).test(item.name)) tell(i, `the tool's name ${text(item.name)}`);
      waiting.set(item.call_id, i);
    }
    if (item.role === "assistant" && Array.isArray(item.content)) {
      for (const part of item.content) if (!["output_text", "refusal"].includes(part.type)) tell(i, `the assistant's content has ${part.type}`);
    }
  }
  const lastWord = items.findLastIndex((item) => (item.type ?? "message") === "message");
  for (const [id, i] of waiting) if (!open || i < lastWord) tell(i, `no output of ${text(id)}`);
}

export function gemini(contents, { model, open }, tell) {
  if (!contents.length) return tell("", "empty list of contents");
  if (contents[0].role === "model") tell(0, "the first content is not the user's");
  for (const [i, content] of contents.entries()) {
    const calls = content.parts?.filter((part) => part.functionCall) ?? [];
    const answers = content.parts?.filter((part) => part.functionResponse) ?? [];
    if (!content.parts?.length) tell(i, "no parts");
    if (!["user", "model", undefined].includes(content.role)) tell(i, `the role ${content.role}`);
    for (const part of [...calls, ...answers]) {
      const { name } = part.functionCall ?? part.functionResponse;
      if (!geminiName.test(name)) tell(i, `the tool's name ${text(name)}`);
    }
    const before = contents[i - 1]?.parts?.filter((part) => part.functionCall).length ?? 0;
    if (calls.length && i > 0 && contents[i - 1].role === "model") tell(i, "calls are not directly after the user"); // "function call turn comes immediately after"
    if (answers.length !== before && !(open && i === contents.length - 1)) tell(i, `${answers.length} responses to ${before} calls`); // "number of function response parts is equal"
    if (!open && calls.length && i === contents.length - 1) tell(i, "calls without responses");
    if (wantsSignatures(model) && calls.length && i > lastSaid(contents) && !calls[0].thoughtSignature) tell(i, "no thoughtSignature");
  }
}

export const wantsSignatures = (model) => /gemini-3/.test(model);

function lastSaid(contents) {
  return contents.findLastIndex((content) => content.role !== "model" && !content.parts?.some((part) => part.functionResponse));
}
