import type { Appended, Problem } from './types.js'

/** The base of all errors of this package. */
export class VarveError extends Error {
  override name = 'VarveError'
}

/** Nothing answers, or the answer did not arrive whole. */
export class Unreachable extends VarveError {
  override name = 'Unreachable'
}

/** An answer that is an error; docs/errors.md lists the codes. */
export class APIError extends VarveError {
  override name = 'APIError'
  readonly code: string
  readonly requestId: string
  readonly retryable: boolean
  /** Where the first problem is: a JSON pointer into the body, or the name of a parameter; '' for neither. */
  readonly pointer: string
  /** What an append did that succeeded, but whose view failed. */
  appended?: Appended

  constructor(readonly status: number, readonly problem: Partial<Problem>, readonly retryAfterMs?: number) {
    super((problem.detail || `status ${status}`) + (problem.code ? ` (${problem.code})` : ''))
    this.code = problem.code ?? ''
    this.requestId = problem.request_id ?? ''
    this.retryable = problem.retryable ?? [502, 503, 504].includes(status)
    this.pointer = problem.errors?.[0]?.pointer ?? ''
  }
}

/** 404: there is no such session, run, result, … */
export class NotFound extends APIError {
  override name = 'NotFound'
}

/** Returns an answer that is not 2xx as an error. */
export async function errorOf(answer: Response): Promise<APIError> {
  const text = await answer.text()
  let problem: Partial<Problem> = {}
  try {
    problem = JSON.parse(text)
  } catch {
    problem = { detail: `status ${answer.status}, which is not an answer of Varve` }
  }
  const after = [['Retry-After-Ms', 1], ['Retry-After', 1000]] as const
  const waits = after.map(([name, unit]) => Number.parseFloat(answer.headers.get(name) ?? '') * unit)
  return new (answer.status === 404 ? NotFound : APIError)(answer.status, problem, waits.find(ms => ms >= 0))
}
