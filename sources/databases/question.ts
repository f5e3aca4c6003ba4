import type { ReadContext, ToolReading } from '../kind.ts'
import type { AskDatabase } from './connect.ts'

/** A named question to a database server, with fixed statements and a result of at most 2 kB. */
export type Question = {
  name: string
  /** A short description of the question for a model. */
  asks: string
  /** Reads the answer to the question. Throws SourceError. */
  read(ask: AskDatabase, pastStatements?: ReadContext['pastStatements']): Promise<ToolReading>
  /** Describes the result in one sentence for people, without the name of the source. */
  say(summary: Record<string, unknown>): string
}
