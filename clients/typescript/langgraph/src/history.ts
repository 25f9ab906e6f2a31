import { BaseListChatMessageHistory } from '@langchain/core/chat_history'
import type { BaseMessage } from '@langchain/core/messages'
import { NotFound, type Session } from '@varve/client'
import { fromView, toChat } from './messages.js'

/** A history of LangChain that never outgrows the model's window: getMessages returns the session's view. */
export class VarveChatMessageHistory extends BaseListChatMessageHistory {
  lc_namespace = ['varve', 'langgraph']

  /** Takes a session of the format openai-chat; its first messages make it. */
  constructor(readonly session: Session) {
    super()
  }

  async getMessages(): Promise<BaseMessage[]> {
    try {
      return fromView((await this.session.context({ fit: 'window', format: 'openai-chat' })).messages, [])
    } catch (error) {
      if (error instanceof NotFound) return []
      throw error
    }
  }

  addMessage(message: BaseMessage): Promise<void> {
    return this.addMessages([message])
  }

  override async addMessages(messages: BaseMessage[]): Promise<void> {
    if (messages.length) await this.session.append(messages.map(toChat))
  }

  override async clear(): Promise<void> {
    await this.session.delete().catch(error => {
      if (!(error instanceof NotFound)) throw error
    })
  }
}
