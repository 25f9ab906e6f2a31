import { MessageList } from '@mastra/core/agent'
import { parseMemoryRequestContext } from '@mastra/core/memory'
import type { ProcessLLMRequestArgs, ProcessLLMRequestResult, Processor } from '@mastra/core/processors'
import type { VarveMemoryStorage } from './storage.js'

/** An input processor: each request of a run, however long, sends the thread's view, which fits the model's window. */
export class VarveWindow implements Processor<'varve-window'> {
  readonly id = 'varve-window'

  constructor(readonly storage: VarveMemoryStorage) {}

  async processLLMRequest({ prompt, messageList, requestContext, state }: ProcessLLMRequestArgs): Promise<ProcessLLMRequestResult> {
    const { thread, resourceId } = parseMemoryRequestContext(requestContext) ?? {}
    if (!thread || !messageList) return undefined
    const session = this.storage.session(thread.id), made = messageList.get.response.aiV5.model(), sent = state['sent'] as number | undefined
    if (sent === undefined) {
      const messages = messageList.get.input.db().map(one => ({ ...one, threadId: thread.id, ...(resourceId && { resourceId }) }))
      await this.storage.saveMessages({ messages })
    }
    const view = made.length > (sent ?? 0) ? await session.step(made.slice(sent ?? 0)) : await session.context({ fit: 'window' })
    state['sent'] = made.length
    const shown = await new MessageList().add(view.messages as never, 'memory').get.all.aiV5.llmPrompt()
    return { prompt: [...prompt.filter(({ role }) => role === 'system'), ...shown.filter(({ role }) => role !== 'system')] }
  }
}
