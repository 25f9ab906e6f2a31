"""Makes varve/types.py of the API's description and varve/_sync.py of varve/_async.py:

    python3 generate.py http://localhost:8080/openapi.json          # writes both
    python3 generate.py http://localhost:8080/openapi.json --check  # exits with 1 if one is not what would be written
"""

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).parent / "varve"
MADE = "# Made by generate.py; do not edit.\n"
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class Types:
    """Dataclasses of the schemas that some code names, and of those that these name."""

    def __init__(self, schemas):
        self.schemas, self.made = schemas, {}

    def add(self, name):
        if name in self.made:
            return name
        schema = self.schemas[name]
        if "enum" in schema:
            self.made[name] = f"{name} = Literal[{', '.join(json.dumps(v) for v in schema['enum'])}]\n"
        elif schema.get("properties"):
            self.made[name] = ""  # it may name itself
            self.made[name] = self.dataclass(name, schema)
        else:
            return self.of({key: value for key, value in schema.items() if key != "$ref"})
        return name

    def dataclass(self, name, schema):
        required = schema.get("required", [])
        lines = ["@dataclass", f"class {name}:"]
        if schema.get("description"):
            about = textwrap.fill(sentence(schema["description"]), 110, subsequent_indent="    ")
            lines += [f'    """{about}"""', ""]
        members = sorted(schema["properties"].items(), key=lambda m: m[0] not in required or keyword.iskeyword(m[0]))
        for key, value in members:
            own = key + "_" if keyword.iskeyword(key) else key
            kind, default = self.of(value), ""
            if key not in required:
                kind, default = optional(kind), " = None"
            if own != key:
                default = f' = field(default=None, metadata={{"name": "{key}"}})'
                kind = optional(kind)
            lines.append(f"    {own}: {kind}{default}")
        return "\n".join(lines) + "\n"

    def of(self, schema):
        if "$ref" in schema:
            return self.add(schema["$ref"].rsplit("/", 1)[1])
        for choice in ("oneOf", "anyOf", "allOf"):
            if choice in schema:
                kinds = [self.of(one) for one in schema[choice] if one.get("type") != "null"]
                kind = kinds[0] if len(kinds) == 1 else "Any"
                return optional(kind) if len(kinds) < len(schema[choice]) else kind
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [one for one in kind if one != "null"]
            inner = self.of({**schema, "type": rest[0]}) if len(rest) == 1 else "Any"
            return optional(inner) if "null" in kind else inner
        if kind == "array":
            return f"List[{self.of(schema.get('items', {}))}]"
        if kind == "object":
            return "Dict[str, Any]"
        return SIMPLE.get(kind, "Any")


def optional(kind):
    return kind if kind == "Any" or kind.startswith("Optional[") else f"Optional[{kind}]"


def sentence(text):
    text = " ".join(text.split()).split(". ")[0].rstrip(".").replace("\\", "\\\\")
    return text[:1].upper() + text[1:] + "."


def types_of(document, used):
    types = Types(document["components"]["schemas"])
    for name in sorted(used):
        types.add(name)
    head = MADE + '"""What the API answers, as its description has it."""\n\n'
    head += "from __future__ import annotations\n\nfrom dataclasses import dataclass, field\n"
    head += "from typing import Any, Dict, List, Literal, Optional\n"
    plain = [made for _, made in sorted(types.made.items()) if made.startswith("@")]
    choices = [made for _, made in sorted(types.made.items()) if not made.startswith("@")]
    return head + "\n" + "".join(choices) + "".join("\n\n" + made for made in plain)


def sync_of(text):
    text = re.sub(r'^""".*?"""', '"""The client. It is made of _async.py by generate.py."""', text, flags=re.S)
    for pattern, plain in (
        (r"\basync (def|for|with)\b", r"\1"), (r"\bawait ", ""), (r"\bAsync(Varve|Session|Transport|Iterator)\b", r"\1"),
        (r"\b__a(enter|exit)__\b", r"__\1__"),
    ):
        text = re.sub(pattern, plain, text)
    return MADE + text


def main():
    with urlopen(sys.argv[1]) as answer:
        document = json.load(answer)
    source = (HERE / "_async.py").read_text("utf-8")
    wanted = {
        "types.py": types_of(document, set(re.findall(r"\btypes\.([A-Z]\w+)", source))), "_sync.py": sync_of(source),
    }
    stale = [name for name, text in wanted.items() if not (HERE / name).exists() or (HERE / name).read_text("utf-8") != text]
    if "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: run python3 generate.py {sys.argv[1]}" if stale else 0)
    for name in stale:
        (HERE / name).write_text(wanted[name], "utf-8")


if __name__ == "__main__":
    main()
