import type { Generated } from 'kysely'
import type { PlatformEffect, PlatformEffectEnding } from '../../domain/platform.ts'
import type { Json, NullableTime, Time } from '../tables.ts'

/** Writes that must run only once: one write for each key, and one at a time for each target. */
export type EffectTables = {
  effect: {
    key: string
    incidentId: string | null
    tool: string
    actionDigest: string
    status: 'running' | 'done' | 'failed' | 'indeterminate'
    detail: Generated<string>
    result: Json<Record<string, unknown>>
    startedAt: Time
    finishedAt: NullableTime
  }
  platformEffect: {
    key: string
    action: PlatformEffect['action']
    vmId: string
    node: string
    target: string
    tasksBefore: Json<string[]>
    task: string | null
    status: PlatformEffectEnding['status'] | null
    detail: string | null
    begunAt: Time
  }
  targetLease: {
    target: string
    /** The incident with the lease; null for a person's own write of low risk (`effectKey`). */
    incidentId: string | null
    attempt: number
    callId: string
    effectKey: Generated<string | null>
    since: Time
  }
  idempotency: {
    tokenId: string
    route: string
    key: string
    bodyDigest: string
    status: number | null
    response: Json<unknown> | null
    createdAt: Time
  }
}
