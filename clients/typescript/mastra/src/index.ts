export { VarveMemoryStorage } from './storage.js'
export { VarveWindow } from './window.js'
