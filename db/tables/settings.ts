import type { Generated } from 'kysely'
import type { EnvironmentVariable } from '../../domain/setting-row.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** Configured policies: one in force, and one that may wait for an admin. */
type SitePolicyTables = {
  sitePolicy: {
    id: string
    digest: string
    place: string
    gitCommit: string | null
    text: string
    /**
     * Permissions that the previous policy did not give. Without any, the policy applied at once.
     */
    widens: Generated<string[]>
    readAt: Time
    status: 'waiting' | 'in_force' | 'past'
    inForceAt: NullableTime
    /** The id of the person who accepted the policy. */
    acceptedBy: string | null
  }
  /** The result of the last read of the policy file, in one row. */
  sitePolicyReading: {
    onlyRow: Generated<boolean>
    readAt: Deadline
    digest: string | null
    faults: Json<{ line: number; why: string; remedy: string }[]>
  }
}

/** Settings that people change while Nightshift runs, with every earlier value. */
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
  /** The environment of the worker that started last, in one row. */
  workerEnvironment: {
    singleton: Generated<boolean>
    variables: Json<EnvironmentVariable[]>
    startedAt: Generated<string>
  }
}
