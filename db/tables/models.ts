import type { ColumnType, Generated } from 'kysely'
import type { ModelProtocol } from '../../domain/model-list.ts'
import type { Deadline, Json, JsonOrDefault, NullableTime, Time } from '../tables.ts'

/** The servers of models: what was learned of each, and who asks them now. */
export type ModelTables = {
  modelProfile: {
    server: string
    model: string
    /** A `RequestShape`, as far as it differs from the plain one. */
    shape: JsonOrDefault<Record<string, unknown>>
    shapeAt: NullableTime
    identity: string | null
    /** The name that it gave itself in its last answer. */
    answeredAs: string | null
    windowTokens: number | null
    windowSource: string | null
    /** The smallest window that a refusal named. */
    refusedWindow: number | null
    refusedAt: NullableTime
    cutsSilently: Generated<boolean>
    isProvisional: Generated<boolean>
    readAt: NullableTime
    /** What the server was seen to be able to do. */
    abilities: JsonOrDefault<Record<string, unknown>>
    /** It did not answer, and is left alone until then. */
    awayUntil: NullableTime
  }
  /** As LLM_SERVERS_FILE declares them, without keys. */
  declaredModel: {
    name: string
    server: string
    model: string
    fallbacks: JsonOrDefault<string[]>
    protocol: ModelProtocol | null
    place: number
    declaredAt: Generated<string>
  }
  /** Dollars by day (UTC); `assumed`: of them, for models that have no price. */
  modelSpend: { day: string; model: string; type: string; answers: number; cost: string; assumed: string }
  spendNotice: { period: string; percent: number; cap: string; at: Time }
  modelPassport: {
    server: string
    model: string
    grade: string
    /** A `Passport`. */
    measured: Json<unknown>
    measuredBy: string
    measuredAt: Time
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
    /** The try that uses it; null while it is kept for the run. */
    token: ColumnType<string | null, string | null | undefined, string | null>
    until: Deadline
  }
}
