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

/** What a write needs from the process that runs it. */
export type EffectDeps = {
  db: Db
  /**
   * Connections with a lock while an effect runs: apart, so that effects cannot starve their own
   * queries.
   */
  locks: Db
  platform: PlatformClient | null
  state: PlatformState
  /** The device mesh, with the keys that sign its requests; null: none is configured. */
  mesh: Mesh | null
  /** What an operator declared as a way to bring a resource back to its wanted state. */
  jobs: Jobs
  /** Exporters' facts of hosts, by host; absent where nothing is monitored. Never throws. */
  askMonitoring?: (suspects: readonly Suspect[]) => Promise<AskedWitnesses>
  /** The engine that makes plans, and how much of a host they may use. */
  placement: { engine: EngineName; limits: PlacementLimits }
  metrics: EffectMetrics
  log: Logger
}

type EffectMetrics = {
  effects: Counter
  deviceCalls: Counter
  deviceCallSeconds: Histogram
}

/** How a write ended at the platform. */
export type Ending = { status: 'done' | 'failed'; detail: string; result: Record<string, unknown> }

/** How a write ended; `indeterminate` where a device says that it cannot tell. */
export type EffectEnding = Omit<Ending, 'status'> & { status: Ending['status'] | 'indeterminate' }

/** The lock of an effect's process: free means that no process runs it any more. */
export function effectLock(key: string): string {
  return `effect:${key}`
}

/** Why a write does not happen. `api/http/middleware.ts` answers each kind with one HTTP status. */
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

/** A refused write, or question before one: `code` is for programs, the message for people. */
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
