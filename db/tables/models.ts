import type { ColumnType, Generated } from 'kysely'
import type { ModelProtocol } from '../../domain/model-list.ts'
import type { Deadline, Json, JsonOrDefault, NullableTime, Time } from '../tables.ts'

/** Model servers: facts that were learned about them, and runs that use them or wait for them. */
export type ModelTables = {
  modelProfile: {
    server: string
    model: string
    /** The parts of a `RequestShape` that differ from the plain one. */
    shape: JsonOrDefault<Record<string, unknown>>
    shapeAt: NullableTime
    identity: string | null
    /** The name that the model reported in its last response. */
    answeredAs: string | null
    windowTokens: number | null
    windowSource: string | null
    /** The smallest context window that an error response named. */
    refusedWindow: number | null
    refusedAt: NullableTime
    cutsSilently: Generated<boolean>
    isProvisional: Generated<boolean>
    readAt: NullableTime
    /** Abilities of the server that were observed. */
    abilities: JsonOrDefault<Record<string, unknown>>
    /** The time until which the model counts as unavailable after an outage. */
    awayUntil: NullableTime
  }
  /** Models as LLM_SERVERS_FILE declares them, without keys. */
  declaredModel: {
    name: string
    server: string
    model: string
    fallbacks: JsonOrDefault<string[]>
    protocol: ModelProtocol | null
    place: number
    declaredAt: Generated<string>
  }
  /** Dollars by day (UTC). `assumed`: the part for models without a known price. */
  modelSpend: { day: string; model: string; type: string; answers: number; cost: string; assumed: string }
  spendNotice: { period: string; percent: number; cap: string; at: Time }
  modelPassport: {
    server: string
    model: string
    grade: string
    /** The result of a check: a `Passport`. */
    measured: Json<unknown>
    measuredBy: string
    measuredAt: Time
  }
  modelSlot: {
    /**
     * The run that uses or waits for the slot: one attempt of an incident, which makes one request
     * at a time.
     */
    holder: string
    server: string
    incidentId: string
    /** The rank of the run in the line. A smaller rank goes first. */
    rank: number
    askedAt: Time
    /** The time at which the run got the slot; null while it waits. */
    heldAt: NullableTime
    /** The attempt that uses the slot; null while the slot is kept for the run. */
    token: ColumnType<string | null, string | null | undefined, string | null>
    until: Deadline
  }
}
