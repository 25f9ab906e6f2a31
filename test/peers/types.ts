// The types of a message, an item or a content of a request, as each provider's own package publishes them.
import type { BetaMessageParam } from "@anthropic-ai/sdk/resources/beta/messages";
import type { Content } from "@google/genai";
import type { ChatCompletionRequest$Outbound } from "@mistralai/mistralai/models/components/chatcompletionrequest";
import type { ChatCompletionMessageParam as GroqMessage } from "groq-sdk/resources/chat/completions";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type {
  DynamicToolUIPart, FileUIPart, ReasoningUIPart, SourceDocumentUIPart, SourceUrlUIPart, StepStartUIPart, TextUIPart,
} from "ai";
import type { ResponseInputItem } from "openai/resources/responses/responses";

export type Anthropic = BetaMessageParam; // has all that MessageParam has, and what needs a header
export type OpenAIChat = ChatCompletionMessageParam;
export type OpenAIResponses = ResponseInputItem;
export type Gemini = Content;
export type Mistral = ChatCompletionRequest$Outbound["messages"][number];
export type Groq = GroqMessage;

// AISDK is UIMessage, whose own type depends on that of the tools.
export interface AISDK {
  id: string;
  role: "system" | "user" | "assistant";
  metadata?: unknown;
  parts: (TextUIPart | ReasoningUIPart | DynamicToolUIPart | SourceUrlUIPart | SourceDocumentUIPart | FileUIPart | StepStartUIPart)[];
}
