import type { Generated } from 'kysely'
import type { EnvironmentVariable } from '../../domain/setting-row.ts'
import type { Json, Time } from '../tables.ts'

/** Settings that people change while it runs, and every value they had. */
export type ConfigTables = {
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
