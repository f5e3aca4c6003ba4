import type { AccessTables } from './tables/access.ts'
import type { ApprovalTables } from './tables/approval.ts'
import type { ConfigTables } from './tables/config.ts'
import type { DeliveryTables } from './tables/delivery.ts'
import type { DeviceTables } from './tables/device.ts'
import type { EffectTables } from './tables/effect.ts'
import type { IncidentTables } from './tables/incident.ts'
import type { InventoryTables } from './tables/inventory.ts'
import type { MetricTables } from './tables/metric.ts'
import type { ModelTables } from './tables/model.ts'
import type { PlacementTables } from './tables/placement.ts'
import type { SlackTables } from './tables/slack.ts'

export type { ApprovalRow } from './tables/approval.ts'
export type { AlertRow, ExpectationRow, IncidentEventRow, IncidentRow } from './tables/incident.ts'

/** Every table by its name, a file per subject. */
export type Database = IncidentTables &
  ApprovalTables &
  AccessTables &
  EffectTables &
  DeviceTables &
  PlacementTables &
  InventoryTables &
  ConfigTables &
  DeliveryTables &
  SlackTables &
  MetricTables &
  ModelTables
