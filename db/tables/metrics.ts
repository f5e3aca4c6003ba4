import type { Generated } from 'kysely'
import type { Json } from '../tables.ts'

/** What `/metrics` counts, once over all processes. */
export type MetricTables = {
  metricCounter: { name: string; labels: Json<Record<string, string>>; value: number }
  metricPosition: {
    id: Generated<number>
    tx: string
    rowId: number
    memory: Json<Record<string, unknown>>
    /** The model's server by the worker's settings. */
    provider: string
  }
  metricLabel: { label: string; value: string }
}
