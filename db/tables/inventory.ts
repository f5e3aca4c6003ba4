import type { Generated } from 'kysely'
import type { Json, JsonOrDefault, Time } from './column.ts'

/** What is run, and where, as of the last look at the platform. */
export type InventoryTables = {
  region: { id: string }
  shard: { id: string; region: string; role: string; status: Generated<string>; config: Json<Record<string, unknown>> }
  node: {
    id: string
    shard: string
    region: string
    role: string
    hostname: string
    ip: string
    status: Generated<string>
    reason: string | null
    replicationLagSeconds: number | null
    diskUsedBytes: number | null
    diskQuotaBytes: number | null
    diskByDirectory: Json<Record<string, number>>
  }
  tenant: { id: string; name: string; shard: string; status: Generated<string> }
  host: { id: string; region: string; rack: string; state: string; ramMib: number; cpuMc: number }
  vm: {
    id: string
    host: string | null
    running: boolean
    ramMib: number
    cpuMc: number
    haGroup: string | null
    priority: Generated<number>
    pinnedTo: JsonOrDefault<string[]>
    forbiddenHosts: JsonOrDefault<string[]>
    affinityGroup: string | null
    tenant: string | null
  }
  link: { a: string; b: string; cost: number; up: boolean }
  inventorySync: { onlyRow: Generated<boolean>; at: Time }
}
