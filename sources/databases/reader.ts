import type { DatabaseState } from '../../domain/database-state.ts'
import type { AskDatabase } from './connect.ts'
import type { ShownSession, SqlRow } from './sessions.ts'

/** A server's page and an investigation's first turn, asked as each product wants it. */
export type ServerReader = {
  readBlocking(ask: AskDatabase): Promise<BlockingTree>
  readConnections(ask: AskDatabase): Promise<Connections>
  readTransactions(ask: AskDatabase): Promise<OpenTransactions>
  readReplication(ask: AskDatabase): Promise<SaidReplication>
  /** What else is remarkable about the server now, a sentence each. */
  readRemarks(ask: AskDatabase): Promise<string[]>
}

export type BlockingTree = {
  /** Sessions that wait for a lock. */
  waiting: number
  roots: {
    root: ShownSession | null
    blocks: number
    longestSince: string | null
    tree: { depth: number; text: string }[]
  }[]
  prepared: SqlRow[]
  /** Sessions that wait where the server does not list who holds what they want. */
  unexplained: string[]
  whole: string
}

export type Connections = {
  used: number
  max: number
  /** For superusers alone. */
  reserved: number
  holders: Record<string, unknown>[]
}

export type LongTransaction = ShownSession & { openSeconds: number; holdsBack: number | null }

export type OpenTransactions = { long: LongTransaction[]; prepared: SqlRow[]; vacuums: string[] }

export type SaidReplication = {
  role: DatabaseState['role']
  /** Remarkable facts, a sentence each. */
  facts: string[]
  parts: DatabaseState['replication']
  lagBytes: number | null
}
