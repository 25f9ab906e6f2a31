// Keeps the sessions of opencode in Varve: a plugin (docs/coding-agents.md).
import { compact, recall, send } from './hook.mjs'

export async function Varve({ client, directory }) {
  const sendSession = async id => {
    const [info, messages] = await Promise.all([client.session.get({ path: { id } }), client.session.messages({ path: { id } })])
    await send(id, JSON.stringify({ info: info.data, messages: messages.data }), directory)
  }
  const telling = work => work.catch(error => client.app.log({ body: { service: 'varve', level: 'error', message: error.message } }))
  return {
    async event({ event }) {
      if (event.type === 'session.idle') await telling(sendSession(event.properties.sessionID))
    },
    async 'experimental.session.compacting'({ sessionID }, output) {
      await telling(sendSession(sessionID).then(() => compact(sessionID)).then(async () => output.context.push(await recall(sessionID))))
    },
  }
}
