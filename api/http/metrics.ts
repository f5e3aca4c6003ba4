import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { connectionsGivenUp, type Db } from '../../db/connect.ts'
import { openIncidentCounts, pendingApprovalCounts } from '../../db/current-counts.ts'
import { type CounterValue, foldCounters, namedOf, readCounters } from '../../db/event-counters.ts'
import { countSlots } from '../../db/models/slots.ts'
import { version } from '../../domain/version.ts'
import {
  safetyCounters as counters,
  countSafetyEvents,
  emptyMemory,
  type MetricsMemory,
  type SafetyCounter,
  safetyLabels,
} from '../../safety/safety-metrics.ts'
import { tools } from '../../tools/registry.ts'

/**
 * Adds the metrics with which every process reports equal values: its version, and the counters of
 * the log.
 */
export function sharedMetrics(db: Db, registers: Registry[]): void {
  new Gauge({
    name: 'nightshift_build_info',
    help: 'Always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
  new Counter({
    name: 'nightshift_database_connections_given_up_total',
    help: "Connections that this process closed because the server would never have answered the statement, by the server's last reply.",
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const [reason, count] of Object.entries(connectionsGivenUp(db))) this.inc({ reason }, count)
    },
  })
  safetyCounters(db, registers)
}

/** Adds gauges that read the database at each scrape. */
function addDatabaseGauges(db: Db, registers: Registry[]): void {
  new Gauge({
    name: 'nightshift_incidents_open',
    help: 'Incidents that are open, investigated or waiting for a person.',
    labelNames: ['type', 'severity'],
    registers,
    async collect() {
      this.reset()
      const counts = await openIncidentCounts(db)
      // Limits the number of labels, because incident types come from alerts.
      const named = await namedOf(
        db,
        'type',
        counts.map(({ type }) => type),
      )
      for (const { count, type, severity } of counts) {
        this.inc({ type: named.has(type) ? type : 'other', severity }, Number(count))
      }
    },
  })
  new Gauge({
    name: 'nightshift_approvals_pending',
    help: 'Approvals that wait for a person.',
    labelNames: ['risk'],
    registers,
    async collect() {
      this.reset()
      for (const { count, ...labels } of await pendingApprovalCounts(db)) this.set(labels, Number(count))
    },
  })
  new Gauge({
    name: 'nightshift_model_slots',
    help: 'Runs with a request at the model, and runs that wait because all slots of the model are in use.',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset()
      const slots = await countSlots(db)
      this.set(
        { state: 'asking' },
        slots.reduce((sum, { held }) => sum + held, 0),
      )
      this.set(
        { state: 'waiting' },
        slots.reduce((sum, { waiting }) => sum + waiting, 0),
      )
    },
  })
}

/** Builds the metrics of one API process. */
export function createMetrics(db: Db) {
  const register = new Registry()
  const registers = [register]
  addDatabaseGauges(db, registers)
  sharedMetrics(db, registers)
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name: `nightshift_${name}`, help, labelNames, registers })
  return {
    register,
    alerts: counter('alerts_received_total', 'Alerts received.', ['source', 'outcome']),
    refusedDecisions: counter(
      'approval_decisions_refused_total',
      'Decisions that were sent about approvals and changed nothing.',
      ['outcome'],
    ),
    effects: counter('effects_total', 'Writes to the platform, by result.', ['tool', 'status']),
    deviceCalls: counter('device_calls_total', 'Calls to devices, by result.', ['capability', 'outcome']),
    deviceCallSeconds: new Histogram({
      name: 'nightshift_device_call_duration_seconds',
      help: 'Duration of calls to devices, including retries.',
      labelNames: ['capability', 'outcome'],
      buckets: [0.005, 0.015, 0.05, 0.1, 0.3, 1, 3, 10, 30, 100],
      registers,
    }),
    sources: new Histogram({
      name: 'nightshift_source_read_duration_seconds',
      help: 'Duration of reads from sources, by source.',
      labelNames: ['source'],
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
      registers,
    }),
    watchdog: counter('watchdog_escalations_total', 'Incidents whose run was lost.', ['why']),
    requests: counter('http_requests_total', 'HTTP requests answered.', ['method', 'route', 'status']),
    requestSeconds: new Histogram({
      name: 'nightshift_http_request_duration_seconds',
      help: 'Duration of HTTP requests.',
      labelNames: ['method', 'route'],
      buckets: [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10, 30],
      registers,
    }),
  }
}
export type Metrics = ReturnType<typeof createMetrics>

const batch = 1000
/** Maximum number of batches that one scrape reads. The next scrape continues. */
const batchesPerScrape = 20
const toolNames: ReadonlySet<string> = new Set(tools.keys())
/** Labels whose values come from outside. */
const bounded = ['model', 'provider']

/**
 * Adds the counters of the log, which are stored as rows. Each scrape of an API or worker first
 * counts new rows, then reports the stored values. Every process therefore reports equal values, a
 * restart loses no count, and no row counts twice. The counters begin with the migration that added
 * them.
 */
function safetyCounters(db: Db, registers: Registry[]): void {
  let reading: Promise<void> | null = null
  const made = new Map<string, Counter>()

  async function catchUp(): Promise<void> {
    for (let read = 0; read < batchesPerScrape; read += 1) {
      if ((await foldCounters(db, batch, foldRows)) < batch) break
    }
    const counts = await readCounters(db)
    const named = new Map<string, ReadonlySet<string>>()
    for (const label of bounded) {
      const values = counts.flatMap(({ labels }) => labels[label] ?? [])
      named.set(label, await namedOf(db, label, values))
    }
    for (const counter of made.values()) counter.reset()
    for (const count of counts) {
      // Ignores a counter that only another version knows. It stays stored.
      if (Object.hasOwn(safetyLabels, count.name)) made.get(count.name)?.inc(boundedLabels(count, named), count.value)
    }
  }

  for (const [name, help] of Object.entries(counters) as [SafetyCounter, string][]) {
    const counter = new Counter({
      name: `nightshift_${name}_total`,
      help,
      labelNames: [...safetyLabels[name]],
      registers,
      // Reads all counters at once.
      async collect() {
        reading ??= catchUp().finally(() => {
          reading = null
        })
        await reading
      },
    })
    made.set(name, counter)
  }
}

type StoredMemory = { recovering?: [string, string][]; models?: [string, string][] }

function foldRows(rows: Parameters<Parameters<typeof foldCounters>[2]>[0], stored: unknown, provider: string) {
  const { recovering = [], models = [] } = stored as StoredMemory
  const memory: MetricsMemory = { ...emptyMemory(), recovering: new Map(recovering), models: new Map(models) }
  const words = { tools: toolNames, provider }
  const increments = rows.flatMap((row) => countSafetyEvents(row, memory, words))
  return { increments, memory: { recovering: [...memory.recovering], models: [...memory.models] } }
}

/** Replaces a value that has no separate series with `other`. */
function boundedLabels(count: CounterValue, named: ReadonlyMap<string, ReadonlySet<string>>): CounterValue['labels'] {
  const declared = safetyLabels[count.name as SafetyCounter]
  return Object.fromEntries(
    declared.map((label) => {
      const value = count.labels[label] ?? 'unknown'
      return [label, named.get(label)?.has(value) === false ? 'other' : value]
    }),
  )
}
