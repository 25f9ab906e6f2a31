// Varve divides a UIMessage of several steps into one for each step. The AI SDK must make the same messages for a model
// of both. messages.json has the messages, written by cmd/varve/ai_sdk_test.go: [{"whole": UIMessage, "steps": [UIMessage]}].
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const messages = JSON.parse(readFileSync(new URL("messages.json", import.meta.url)));
const asked = { id: "u", role: "user", parts: [{ type: "text", text: "Go." }] };

for (const name of ["ai5", "ai6", "ai7"]) {
  const { convertToModelMessages, safeValidateUIMessages } = await import(name);

  test(`${name} sends a model the same for a message and for its steps`, async () => {
    for (const { whole, steps } of messages) {
      const want = await convertToModelMessages([asked, whole, asked]);
      const got = await convertToModelMessages([asked, ...steps, asked]);
      assert.deepEqual(got, want);
      assert.ok(want.length > 3, "the message is of one step");
    }
  });

  test(`${name} takes each step for a message`, async () => {
    for (const { steps } of messages) {
      const { success, error } = await safeValidateUIMessages({ messages: steps });
      assert.ok(success, error?.message);
      assert.equal(new Set(steps.map((s) => s.id)).size, steps.length);
    }
  });
}
