// Gives views to the packages that send them, with a fetch that keeps the request instead of sending it, and holds the
// requests that the packages make to the providers' rules.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createOpenAI } from "@ai-sdk/openai";
import { isDeepStrictEqual } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { coerceMessageLikeToMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { convertToModelMessages, generateText, safeValidateUIMessages } from "ai";
import OpenAI from "openai";

let requests = [];

// capture keeps the body of a request. The status is one that no package tries again after.
async function capture(_, init) {
  requests.push(JSON.parse(init.body));
  return new Response(`{"error":{"message":"kept","type":"kept"}}`, { status: 400, headers: { "content-type": "application/json" } });
}

// requested returns the body of the request that send makes, or what it throws before there is any.
async function requested(send) {
  requests = [];
  try {
    await send();
  } catch (error) {
    if (!requests.length) return { error: `${error.name}: ${error.message}`.slice(0, 400) };
  }
  return { body: requests.at(-1) };
}

const key = { apiKey: "none", fetch: capture, maxRetries: 0 };
const openai = new OpenAI(key);
const anthropic = new Anthropic(key);
const langchain = new ChatOpenAI({ model: "gpt-5-mini", apiKey: "none", maxRetries: 0, configuration: { fetch: capture } });
globalThis.fetch = capture; // @google/genai has no setting for it
const google = new GoogleGenAI({ apiKey: "none" });

const providers = {
  anthropic: createAnthropic(key), openai: createOpenAI(key), google: createGoogleGenerativeAI(key), mistral: createMistral(key),
};

// aiModel returns the package's model, and as what its requests are checked.
function aiModel(model) {
  if (/claude/.test(model)) return [{ provider: "anthropic", made: providers.anthropic(model), as: "anthropic" }];
  if (/gemini/.test(model)) return [{ provider: "google", made: providers.google(model), as: "gemini" }];
  if (/mistral/.test(model)) return [{ provider: "mistral", made: providers.mistral(model), as: "mistral" }];
  if (/gpt/.test(model)) {
    return [
      { provider: "openai", made: providers.openai.chat(model), as: "openai-chat" },
      { provider: "openai", made: providers.openai.responses(model), as: "openai-responses" },
    ];
  }
  return [];
}

export const isServed = (model) => aiModel(model).length > 0;
export const asksOpenAI = (model) => !model || /gpt/.test(model);

// checks are the packages by the format of a view. Each tells what is wrong.
const checks = {
  "openai-chat": [
    ["openai", async ({ messages, model }, tell) => {
      same(messages, await requested(() => openai.chat.completions.create({ model: model || "gpt-5", messages })), "messages", tell);
    }],
    // What LangChain itself makes of a content is its own: only its calls and results are counted.
    ["@langchain/core", async (view, tell) => {
      const coerced = view.messages.map((message) => coerceMessageLikeToMessage(message));
      if (!asksOpenAI(view.model)) return;
      const { body, error } = await requested(() => langchain.invoke(coerced));
      if (error) return tell("", error);
      const pairs = (list) => list.flatMap((message) => message.tool_calls ?? (message.role === "tool" ? [0] : [])).length;
      const [sent, had] = [pairs(body.messages), pairs(view.messages)];
      if (sent !== had) tell("", `${sent} of ${had} calls and results are sent`);
    }],
  ],
  "openai-responses": [["openai", async ({ messages, model }, tell) => {
    same(messages, await requested(() => openai.responses.create({ model: model || "gpt-5", input: messages })), "input", tell);
  }]],
  anthropic: [["@anthropic-ai/sdk", async ({ messages, system, model }, tell) => {
    const sent = await requested(() => anthropic.messages.create({ model: model || "claude-sonnet-4-5", max_tokens: 1, system, messages }));
    same(messages, sent, "messages", tell);
  }]],
  gemini: [["@google/genai", async ({ messages, model }, tell) => {
    const sent = await requested(() => google.models.generateContent({ model: model || "gemini-2.5-pro", contents: messages }));
    same(messages, sent, "contents", tell);
  }]],
  "ai-sdk": [["ai", async (view, tell, hold) => {
    const { success, error } = await safeValidateUIMessages({ messages: view.messages });
    if (!success) return tell(...refused(error));
    const converted = await convertToModelMessages(view.messages);
    if (view.open) return; // the package sends nothing while a call waits
    for (const { provider, made, as } of aiModel(view.model)) {
      const { body, error } = await requested(() => generateText({ model: made, messages: converted, maxRetries: 0, allowSystemInMessages: true }));
      if (error) tell("", `@ai-sdk/${provider}: ${error}`);
      else hold(as, body.messages ?? body.input ?? body.contents, `@ai-sdk/${provider} ${as}`);
    }
  }]],
};

// refused returns the path and the words of the first thing that validateUIMessages does not take.
function refused(error) {
  const { path, message } = error.cause?.cause?.issues?.[0] ?? error.cause?.issues?.[0] ?? { path: [], message: error.message };
  return [path.join("/"), `validateUIMessages: ${message}`.slice(0, 200)];
}

function same(messages, { body, error }, member, tell) {
  if (error) tell("", error);
  else if (!isDeepStrictEqual(body[member], messages)) tell("", "the package sends other messages");
}

// pipe gives a view to all packages for its format. hold checks messages that a package sends, as another format.
export async function pipe(view, tell, hold) {
  for (const [name, check] of checks[view.format]) {
    try {
      await check(view, (at, what) => tell(name, at, what), (as, messages, by) => hold(by ?? name, as, messages));
    } catch (error) {
      tell(name, "", `${error.name}: ${error.message}`.slice(0, 400));
    }
  }
}
