import type { Logger } from 'pino'
import type { Counter, Histogram } from 'prom-client'
import type { PlatformClient } from '../clients/platform.ts'
import type { Db } from '../db/connect.ts'
import type { AskedWitnesses, Suspect } from '../db/inventory/deaths.ts'
import type { PlacementLimits } from '../domain/placement.ts'
import type { EngineName } from '../placement/bound/assignment.ts'
import type { Mesh } from './devices/executor.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { PlatformState } from './platform-state.ts'

/** The parts of this process that a write needs. */
export type EffectDeps = {
  db: Db
  /**
   * Database connections that hold a lock while an effect runs. The connections are a separate
   * pool, so that held locks cannot block the queries of effects.
   */
  locks: Db
  platform: PlatformClient | null
  state: PlatformState
  /** The device mesh, with the keys that sign its requests; null if no mesh is configured. */
  mesh: Mesh | null
  /** Declared jobs, which bring a resource back to its desired state. */
  jobs: Jobs
  /**
   * Reads the facts that exporters report about hosts, by host; absent without a monitoring source.
   * Never throws.
   */
  askMonitoring?: (suspects: readonly Suspect[]) => Promise<AskedWitnesses>
  /** The engine that makes plans, and the share of a host's resources that plans may use. */
  placement: { engine: EngineName; limits: PlacementLimits }
  metrics: EffectMetrics
  log: Logger
}

type EffectMetrics = {
  effects: Counter
  deviceCalls: Counter
  deviceCallSeconds: Histogram
}

/** The ending of a write at the platform. */
export type Ending = { status: 'done' | 'failed'; detail: string; result: Record<string, unknown> }

/** The ending of a write; `indeterminate` if a device reports that it cannot tell. */
export type EffectEnding = Omit<Ending, 'status'> & { status: Ending['status'] | 'indeterminate' }

/**
 * Names the lock that a process holds while it runs an effect. If the lock is free, no process runs
 * the effect any more.
 */
export function effectLock(key: string): string {
  return `effect:${key}`
}

/** Kinds of refusals. `api/http/middleware.ts` answers each kind with an HTTP status. */
export type RefusalKind =
  | 'not_allowed'
  | 'not_found'
  | 'conflict'
  | 'state_changed'
  | 'invalid'
  | 'device_failed'
  | 'precondition_required'
  | 'too_many'
  | 'unavailable'

/** A refused write, or a refused read before it. `code` is for programs, the message for people. */
export class EffectRefused extends Error {
  override name = 'EffectRefused' as const
  readonly kind: RefusalKind
  readonly code: string
  readonly fields: Record<string, unknown>
  readonly retryAfterSeconds: number | null
  constructor(
    kind: RefusalKind,
    code: string,
    detail: string,
    more: { fields?: Record<string, unknown>; retryAfterSeconds?: number } = {},
  ) {
    super(detail)
    this.kind = kind
    this.code = code
    this.fields = more.fields ?? {}
    this.retryAfterSeconds = more.retryAfterSeconds ?? null
  }
}

export function refuseMissing(what: string): EffectRefused {
  return new EffectRefused('not_found', 'NOT_FOUND', `There is no ${what}.`)
}
