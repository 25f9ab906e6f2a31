export * from './client.js'
export { APIError, NotFound, Unreachable, VarveError } from './errors.js'
export { type Call, type Options, type Query, version } from './transport.js'
export type * as types from './types.js'
