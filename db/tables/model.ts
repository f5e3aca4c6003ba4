import type { ColumnType, Generated } from 'kysely'
import type { Deadline, JsonOrDefault, NullableTime, Time } from './column.ts'

/** The servers of models: what was learned of each, and who asks them now. */
export type ModelTables = {
  modelProfile: {
    server: string
    model: string
    /** A `RequestShape`, as far as it differs from the plain one. */
    shape: JsonOrDefault<Record<string, unknown>>
    shapeAt: NullableTime
    identity: string | null
    windowTokens: number | null
    windowSource: string | null
    /** The smallest window that a refusal named. */
    refusedWindow: number | null
    cutsSilently: Generated<boolean>
    isProvisional: Generated<boolean>
    readAt: NullableTime
  }
  modelSlot: {
    /** The run that thinks: one incident's attempt, which asks for one answer at a time. */
    holder: string
    server: string
    incidentId: string
    /** Smaller goes first. */
    rank: number
    askedAt: Time
    /** Null while it waits. */
    heldAt: NullableTime
    /** Of the try that uses it; null while it is kept for the run. */
    token: ColumnType<string | null, string | null | undefined, string | null>
    until: Deadline
  }
}
