import type { ReadContext, ToolReading } from '../kind.ts'
import type { AskDatabase } from './connect.ts'

/** A question that has a name: its statements are ours, and its answer is folded to 2 kB. */
export type Question = {
  name: string
  /** For a model, in a few words. */
  asks: string
  /** Throws SourceError. */
  read(ask: AskDatabase, pastStatements?: ReadContext['pastStatements']): Promise<ToolReading>
  /** The answer in one sentence for people, without the name of the source. */
  say(summary: Record<string, unknown>): string
}
