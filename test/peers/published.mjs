// Holds messages to the schemas of the folder schemas: those of the providers' packages, which have no members besides
// those that they name, and OpenAI's OpenAPI document, which has lengths and numbers of elements, too.
import { readFileSync } from "node:fs";
import Ajv from "ajv";

const loaded = new Map();

function load(name) {
  if (!loaded.has(name)) {
    const schema = JSON.parse(readFileSync(new URL(`schemas/${name}.json`, import.meta.url)));
    const ajv = new Ajv({ strict: false, unicodeRegExp: true });
    loaded.set(name, { schema, valid: ajv.compile(schema), known: new Map() });
  }
  return loaded.get(name);
}

// published returns the path and the words of what is wrong with a message, undefined if nothing is.
export function published(name, message) {
  const { schema, valid, known } = load(name);
  const written = JSON.stringify(message);
  if (!known.has(written)) {
    if (known.size > 50_000) known.clear();
    known.set(written, valid(message) ? undefined : new Explainer(schema.$defs).explain(schema, message, "") ?? { at: "", what: "does not match the schema" });
  }
  return known.get(written);
}

// Explainer finds the member that is wrong. Where a value may be one of several types, it goes by the one whose
// constants the value has.
class Explainer {
  constructor(definitions) {
    this.definitions = definitions;
  }

  resolve(schema) {
    while (schema.$ref) schema = this.definitions[schema.$ref.slice("#/$defs/".length)];
    return schema;
  }

  explain(schema, value, at) {
    schema = this.resolve(schema);
    const alternative = schema.anyOf && this.alternatives(schema.anyOf, value, at);
    if (alternative) return alternative;
    for (const each of schema.allOf ?? []) {
      const wrong = this.explain(each, value, at);
      if (wrong) return wrong;
    }
    return this.type(schema, value, at) ?? this.object(schema, value, at) ?? this.array(schema, value, at) ?? this.bounds(schema, value, at);
  }

  type(schema, value, at) {
    if ("const" in schema && schema.const !== value) return { at, what: `is not ${JSON.stringify(schema.const)}`, constant: true };
    if (schema.enum && !schema.enum.includes(value)) return { at, what: `is ${short(value)}, not one of ${schema.enum}`, constant: schema.enum.length === 1 };
    const types = [schema.type ?? []].flat();
    const is = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
    if (types.length && !types.includes(is) && !(is === "number" && types.includes("integer"))) return { at, what: `is ${short(value)}, not ${types}` };
  }

  object(schema, value, at) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return;
    for (const key of ["type", "role"]) {
      const wrong = key in value && schema.properties?.[key] && this.explain(schema.properties[key], value[key], `${at}/${key}`);
      if (wrong) return { ...wrong, constant: true };
    }
    for (const key of schema.required ?? []) if (!(key in value)) return { at, what: `has no ${key}`, constant: key === "type" || key === "role" };
    for (const [key, member] of Object.entries(value)) {
      const known = schema.properties?.[key];
      const wrong = known ? this.explain(known, member, `${at}/${key}`)
        : schema.additionalProperties === false ? { at: `${at}/${key}`, what: "is an unknown member" }
          : schema.additionalProperties ? this.explain(schema.additionalProperties, member, `${at}/${key}`) : undefined;
      if (wrong) return wrong;
    }
  }

  array(schema, value, at) {
    if (!Array.isArray(value)) return;
    for (const [i, element] of value.entries()) {
      const wrong = schema.items && this.explain(schema.items, element, `${at}/${i}`);
      if (wrong) return wrong;
    }
  }

  bounds(schema, value, at) {
    if (value?.length < (schema.minItems ?? schema.minLength)) return { at, what: "is empty or too short" };
    if (value?.length > (schema.maxItems ?? schema.maxLength)) return { at, what: "is too long" };
    if (schema.pattern && typeof value === "string" && !new RegExp(schema.pattern, "u").test(value)) return { at, what: `does not match ${schema.pattern}` };
  }

  alternatives(list, value, at) {
    const wrongs = list.map((each) => this.explain(each, value, at));
    if (wrongs.includes(undefined)) return;
    const direct = (wrong) => wrong.at.split("/").length - at.split("/").length;
    const own = wrongs.filter((wrong) => !(wrong.constant && direct(wrong) <= 1));
    const deep = own.filter((wrong) => wrong.at !== at);
    return (deep.length ? deep : own.length ? own : [{ at, what: `is of no known type: ${short(value?.type ?? value?.role ?? value)}` }])
      .sort((a, b) => direct(b) - direct(a))[0];
  }
}

const short = (value) => (JSON.stringify(value) ?? "undefined").slice(0, 60);
