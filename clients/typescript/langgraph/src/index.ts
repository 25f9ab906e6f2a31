export { VarveChatMessageHistory } from './history.js'
export { VarveMemory } from './memory.js'
export { VarveSaver } from './saver.js'
