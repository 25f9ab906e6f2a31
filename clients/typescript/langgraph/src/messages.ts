import {
  AIMessage, type BaseMessage, type ContentBlock, HumanMessage, isAIMessage, isDataContentBlock, isToolMessage, SystemMessage, ToolMessage,
} from '@langchain/core/messages'

interface Call {
  id: string
  type: 'function'
  function: { name: string, arguments: string }
}

/** A message of Chat Completions. */
export interface ChatMessage {
  role: string
  content: string | object[] | null
  tool_calls?: Call[]
  tool_call_id?: string
}

/** Returns a message as Chat Completions has it. */
export function toChat(message: BaseMessage): ChatMessage {
  if (isToolMessage(message)) return { role: 'tool', tool_call_id: message.tool_call_id, content: textOf(message) }
  if (isAIMessage(message)) {
    const calls = [
      ...(message.tool_calls ?? []).map(({ id, name, args }) => callOf(id, name, JSON.stringify(args))),
      ...(message.invalid_tool_calls ?? []).map(({ id, name, args }) => callOf(id, name, args)),
    ]
    return { role: 'assistant', content: message.text || (calls.length ? null : ''), ...(calls.length > 0 && { tool_calls: calls }) }
  }
  if (message.getType() === 'system') return { role: 'system', content: textOf(message) }
  return { role: 'user', content: typeof message.content === 'string' ? message.content : message.content.map(block) }
}

function callOf(id = '', name = '', args = '{}'): Call {
  return { id, type: 'function', function: { name, arguments: args } }
}

/** Returns a text with what else the content has as JSON. */
function textOf({ content }: BaseMessage): string {
  if (typeof content === 'string') return content
  return content.map(part => typeof part['text'] === 'string' ? part['text'] : JSON.stringify(part)).join('\n')
}

/** Returns a block of the user. */
function block(part: ContentBlock): object {
  if (['text', 'image_url', 'input_audio', 'file'].includes(part.type) && !isDataContentBlock(part)) return part
  const { mime_type, mimeType = mime_type, data, url } = part as Record<string, unknown>
  const source = typeof url === 'string' ? url : typeof data === 'string' && mimeType ? `data:${String(mimeType)};base64,${data}` : ''
  if (part.type === 'image' && source) return { type: 'image_url', image_url: { url: source } }
  return { type: 'text', text: JSON.stringify(part) }
}

/**
 * Returns the messages of a view. One that is as it was sent is the message that it was made of, with all that it had; none is there
 * twice, because LangGraph takes two with one id for one.
 */
export function fromView(view: object[], sent: BaseMessage[]): BaseMessage[] {
  const known = new Map<string, BaseMessage[]>()
  for (const message of sent) {
    const text = JSON.stringify(toChat(message))
    known.set(text, [...known.get(text) ?? [], message])
  }
  return view.map(message => known.get(JSON.stringify(message))?.shift() ?? fromChat(message as ChatMessage))
}

function fromChat({ role, content, tool_calls = [], tool_call_id = '' }: ChatMessage): BaseMessage {
  const text = (content ?? '') as string
  switch (role) {
    case 'assistant': {
      const calls = tool_calls.map(({ id, function: { name, arguments: args } }) => ({ type: 'tool_call' as const, id, name, args: parsed(args) }))
      return new AIMessage({ content: text, tool_calls: calls })
    }
    case 'tool':
      return new ToolMessage({ content: text, tool_call_id })
    case 'system':
    case 'developer':
      return new SystemMessage({ content: text })
    default:
      return new HumanMessage({ content: text })
  }
}

/** Returns the arguments of a call, of what is no JSON object the text. */
function parsed(args: string): Record<string, unknown> {
  try {
    return JSON.parse(args)
  } catch {
    return { input: args }
  }
}
