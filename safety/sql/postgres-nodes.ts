/** Results of PostgreSQL's parser, and the code shared for reading them. */
export type SqlNode = Record<string, unknown>

/**
 * Thrown if a node is not on the list of reads; the message names it. A refusal is not an Error,
 * because a stack trace costs more than parsing.
 */
export class BoundRefusal {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

export function strings(list: unknown): string[] {
  const found: string[] = []
  for (const entry of Array.isArray(list) ? list : []) {
    const text = (entry as { String?: { sval?: string } }).String?.sval
    if (text !== undefined) found.push(text)
  }
  return found
}

/** Returns the value of a literal number; null for anything else. */
export function numberOf(node: unknown): number | null {
  const { ival, fval } = ((node as SqlNode | undefined)?.A_Const ?? {}) as {
    ival?: { ival?: number }
    fval?: { fval?: string }
  }
  return ival ? (ival.ival ?? 0) : fval ? Number(fval.fval) : null
}
