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
    /** Who serves the model, as the worker's settings say. */
    provider: string
  }
  metricLabel: { label: string; value: string }
}
