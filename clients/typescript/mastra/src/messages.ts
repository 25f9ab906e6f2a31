import { type MastraDBMessage, MessageList } from '@mastra/core/agent'

/** A message as it is stored: a UIMessage, with what only Mastra knows of it. */
export interface Stored {
  id: string
  role: string
  parts: object[]
  mastra?: Omit<MastraDBMessage, 'id' | 'content' | 'createdAt'> & {
    createdAt: string
    content?: MastraDBMessage['content'] // unless the UIMessage becomes the same
  }
}

export function toStored(message: MastraDBMessage): Stored {
  const { id, content, ...mastra } = JSON.parse(JSON.stringify(message)) as Omit<MastraDBMessage, 'createdAt'> & { createdAt: string }
  const [shown] = new MessageList().add(message, 'memory').get.all.aiV5.ui()
  const stored = { id, role: shown?.role ?? 'user', parts: shown?.parts ?? [] }
  const same = JSON.stringify(contentOf(stored)) === JSON.stringify(content)
  return { ...stored, mastra: same ? mastra : { ...mastra, content } }
}

/** Returns a message that Mastra has stored, undefined for any other. */
export function fromStored({ mastra, ...stored }: Stored): MastraDBMessage | undefined {
  if (!mastra) return undefined
  const { createdAt, content = contentOf(stored), ...more } = mastra
  return { id: stored.id, ...more, content: content as MastraDBMessage['content'], createdAt: new Date(createdAt) }
}

function contentOf(stored: Omit<Stored, 'mastra'>): unknown {
  return new MessageList().add(stored as never, 'memory').get.all.db()[0]?.content
}
