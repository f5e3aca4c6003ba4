/** What PostgreSQL's parser answers, and what is common to all that read it. */
export type SqlNode = Record<string, unknown>

/**
 * Thrown where a node is not on a read's list; the message names it. No Error: a stack costs more
 * than reading.
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

/** A plain number that stands there; null for anything else. */
export function numberOf(node: unknown): number | null {
  const { ival, fval } = ((node as SqlNode | undefined)?.A_Const ?? {}) as {
    ival?: { ival?: number }
    fval?: { fval?: string }
  }
  return ival ? (ival.ival ?? 0) : fval ? Number(fval.fval) : null
}
