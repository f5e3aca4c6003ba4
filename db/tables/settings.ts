import type { Generated } from 'kysely'
import type { EnvironmentVariable } from '../../domain/setting-row.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** What the site's policy was and is: one in force, one that may wait for an admin. */
type SitePolicyTables = {
  sitePolicy: {
    id: string
    digest: string
    place: string
    gitCommit: string | null
    text: string
    /** What it allows that the one before did not; none: it held at once. */
    widens: Generated<string[]>
    readAt: Time
    status: 'waiting' | 'in_force' | 'past'
    inForceAt: NullableTime
    /** The speaker, by id. */
    acceptedBy: string | null
  }
  /** The last finding: one row. */
  sitePolicyReading: {
    onlyRow: Generated<boolean>
    readAt: Deadline
    digest: string | null
    faults: Json<{ line: number; why: string; remedy: string }[]>
  }
}

/** Settings that people change while it runs, and every value they had. */
export type ConfigTables = SitePolicyTables & {
  platformConfig: {
    key: string
    value: string
    version: Generated<number>
    updatedAt: Time
    updatedBy: Generated<string>
    reason: string | null
  }
  platformConfigRevision: {
    id: Generated<number>
    key: string
    version: number
    oldValue: string | null
    newValue: string | null
    actor: string | null
    reason: string | null
    at: Time
  }
  /** What the worker that started last was started with: one row. */
  workerEnvironment: {
    singleton: Generated<boolean>
    variables: Json<EnvironmentVariable[]>
    startedAt: Generated<string>
  }
}
