// Writes the folder schemas: a JSON schema for each type of types.ts, and, if the path of OpenAI's openapi.json
// (github.com/openai/openai-openapi) is given, the part of it that describes messages and items. Descriptions are left
// out. It needs the development dependencies: npm ci, npm run schemas -- openapi.json.
import { readFileSync, writeFileSync } from "node:fs";
import { createGenerator } from "ts-json-schema-generator";

const here = (name) => new URL(name, import.meta.url);

// write puts each definition in a line.
function write(name, root, definitions) {
  const lines = Object.keys(definitions).sort().map((key) => `${JSON.stringify(key)}:${JSON.stringify(definitions[key])}`);
  writeFileSync(here(`schemas/${name}.json`), `{"$ref":"#/$defs/${root}","$defs":{\n${lines.join(",\n")}\n}}\n`);
}

// map copies a schema. Of each object that is a schema, only the members that keep allows stay.
function map(node, keep, names = false) {
  if (Array.isArray(node)) return node.map((each) => map(each, keep));
  if (node === null || typeof node !== "object") return node;
  const kept = Object.entries(node).filter(([key]) => names || keep(key));
  return Object.fromEntries(kept.map(([key, value]) => [key === "oneOf" && !names ? "anyOf" : key, key === "$ref" ? rename(value) : map(value, keep, !names && key === "properties")]));
}

const plain = (name) => name.replaceAll(/[^A-Za-z0-9]+/g, "_");
const rename = (ref) => `#/$defs/${plain(decodeURIComponent(ref.split("/").pop()))}`;
const keptWords = new Set([
  "$ref", "type", "const", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf", "not",
  "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern",
]);

// reachable returns the definitions that root needs.
function reachable(root, definitions) {
  const found = {};
  const visit = (name) => {
    if (found[name]) return;
    found[name] = definitions[name];
    for (const [, ref] of JSON.stringify(definitions[name]).matchAll(/"#\/\$defs\/([^"]+)"/g)) visit(ref);
  };
  visit(root);
  return found;
}

function cleaned(schemas) {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [plain(name), map(schema, (key) => keptWords.has(key))]));
}

// withoutDefaults makes optional what Mistral's package adds to a request itself.
function withoutDefaults(node) {
  if (node === null || typeof node !== "object") return;
  if (Array.isArray(node.required)) node.required = node.required.filter((name) => !["prefix", "index", "id", "type"].includes(name) || name === "type" && node.properties.type.const);
  for (const child of Object.values(node)) withoutDefaults(child);
}

const names = {
  Anthropic: "anthropic", OpenAIChat: "openai-chat", OpenAIResponses: "openai-responses", Gemini: "gemini", Mistral: "mistral", Groq: "groq",
  AISDK: "ai-sdk",
};
for (const [type, name] of Object.entries(names)) {
  const { definitions } = createGenerator({
    path: here("types.ts").pathname, tsconfig: here("tsconfig.json").pathname, type, skipTypeCheck: true, additionalProperties: false,
  }).createSchema(type);
  const kept = reachable(type, cleaned(definitions));
  if (type === "Mistral") withoutDefaults(kept.Mistral);
  write(name, type, kept);
}

if (process.argv[2]) {
  const { schemas } = JSON.parse(readFileSync(process.argv[2])).components;
  const all = cleaned(schemas);
  for (const [root, name] of [["ChatCompletionRequestMessage", "openapi-chat"], ["InputItem", "openapi-responses"]]) {
    write(name, root, reachable(root, all));
  }
}
