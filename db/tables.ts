import type { ColumnType } from 'kysely'
import type { AccessTables } from './tables/access.ts'
import type { ApprovalTables } from './tables/approvals.ts'
import type { IncidentTables } from './tables/incidents.ts'
import type {
  ChangeTables,
  DeviceTables,
  InventoryTables,
  PlacementTables,
  RegistryTables,
  SourceTables,
} from './tables/inventory.ts'
import type { MetricTables } from './tables/metrics.ts'
import type { ModelTables } from './tables/models.ts'
import type { DeliveryTables, SlackTables } from './tables/outbox.ts'
import type { RetentionTables } from './tables/retention.ts'
import type { ConfigTables } from './tables/settings.ts'
import type { EffectTables } from './tables/writes.ts'

export type { ApprovalRow } from './tables/approvals.ts'
export type { AlertRow, ExpectationRow, IncidentEventRow, IncidentRow } from './tables/incidents.ts'

/** Every table by its name. Each subject has a file with its tables. */
export type Database = IncidentTables &
  ApprovalTables &
  AccessTables &
  EffectTables &
  DeviceTables &
  PlacementTables &
  InventoryTables &
  RegistryTables &
  SourceTables &
  ChangeTables &
  ConfigTables &
  DeliveryTables &
  SlackTables &
  MetricTables &
  ModelTables &
  RetentionTables

/**
 * A time in RFC 3339, in UTC with microseconds. `connect()` installs the parser that keeps times as
 * texts, so that no precision is lost.
 */
export type Time = ColumnType<string, string | undefined, string>
export type NullableTime = ColumnType<string | null, string | null | undefined, string | null>
/** A future time, which the database computes by its clock when the row is written. */
export type Deadline = ColumnType<string, unknown, unknown>
export type Json<T> = ColumnType<T, string, string>
export type JsonOrDefault<T> = ColumnType<T, string | undefined, string>
export type JsonOrNull<T> = ColumnType<T | null, string | null | undefined, string | null>
