import type { ReadContext, ToolReading } from '../kind.ts'
import type { AskDatabase } from './connect.ts'

/** A named question: its statements are fixed, and its result is shortened to 2 kB. */
export type Question = {
  name: string
  /** A short description for a model. */
  asks: string
  /** Throws SourceError. */
  read(ask: AskDatabase, pastStatements?: ReadContext['pastStatements']): Promise<ToolReading>
  /** Describes the result in one sentence for people, without the name of the source. */
  say(summary: Record<string, unknown>): string
}
