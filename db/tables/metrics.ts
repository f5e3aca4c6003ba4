import type { Generated } from 'kysely'
import type { Json } from '../tables.ts'

/** Counters of `/metrics`, counted once over all processes. */
export type MetricTables = {
  metricCounter: { name: string; labels: Json<Record<string, string>>; value: number }
  metricPosition: {
    id: Generated<number>
    tx: string
    rowId: number
    memory: Json<Record<string, unknown>>
    /** The address of the model server, from the settings of the worker. */
    provider: string
  }
  metricLabel: { label: string; value: string }
}
