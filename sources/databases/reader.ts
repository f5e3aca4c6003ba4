import type { DatabaseState } from '../../domain/database-state.ts'
import type { AskDatabase } from './connect.ts'
import type { ShownSession, SqlRow } from './sessions.ts'

/** Reads a product's server for its page and for the first turn of an investigation. */
export type ServerReader = {
  readBlocking(ask: AskDatabase): Promise<BlockingTree>
  readConnections(ask: AskDatabase): Promise<Connections>
  readTransactions(ask: AskDatabase): Promise<OpenTransactions>
  readReplication(ask: AskDatabase): Promise<SaidReplication>
  /** Returns further remarkable facts about the present state of the server, each as a sentence. */
  readRemarks(ask: AskDatabase): Promise<string[]>
}

export type BlockingTree = {
  /** Number of sessions that wait for a lock. */
  waiting: number
  roots: {
    root: ShownSession | null
    blocks: number
    longestSince: string | null
    tree: { depth: number; text: string }[]
  }[]
  prepared: SqlRow[]
  /** Sessions that wait for a lock. The server does not list the holder of the lock. */
  unexplained: string[]
  whole: string
}

export type Connections = {
  used: number
  max: number
  /** Connections reserved for superusers. */
  reserved: number
  holders: Record<string, unknown>[]
}

export type LongTransaction = ShownSession & { openSeconds: number; holdsBack: number | null }

export type OpenTransactions = { long: LongTransaction[]; prepared: SqlRow[]; vacuums: string[] }

export type SaidReplication = {
  role: DatabaseState['role']
  /** Remarkable facts about replication, each as a sentence. */
  facts: string[]
  parts: DatabaseState['replication']
  lagBytes: number | null
}
