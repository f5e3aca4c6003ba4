import { Counter, type Registry } from 'prom-client'
import type { Db } from '../db/connect.ts'
import { type Count, countersNow, foldCounters, namedOf } from '../db/metric-counters.ts'
import {
  safetyCounters as counters,
  emptyMemory,
  type Memory,
  type SafetyCounter,
  safetyLabels,
  tally,
} from '../safety/tally.ts'
import { tools } from '../tools/registry.ts'

const batch = 1000
/** What one scrape reads at most: the next one goes on from there. */
const batchesPerScrape = 20
const toolNames: ReadonlySet<string> = new Set(tools.keys())
/** Labels whose values come from outside. */
const bounded = ['model', 'provider']

/**
 * The counters of the log. They are rows: each scrape of an API or a worker first counts the rows of the log that no process has
 * counted, and then answers what is stored. So every process answers the same, a restart loses no count, and no row is counted
 * twice. They begin where the database was migrated to keep them.
 */
export function safetyCounters(db: Db, registers: Registry[]): void {
  let reading: Promise<void> | null = null
  const made = new Map<string, Counter>()

  async function catchUp(): Promise<void> {
    for (let read = 0; read < batchesPerScrape; read += 1) {
      if ((await foldCounters(db, batch, foldRows)) < batch) break
    }
    const counts = await countersNow(db)
    const named = new Map<string, ReadonlySet<string>>()
    for (const label of bounded) {
      const values = counts.flatMap(({ labels }) => labels[label] ?? [])
      named.set(label, await namedOf(db, label, values))
    }
    for (const counter of made.values()) counter.reset()
    for (const count of counts) {
      // One that another version counts stays stored.
      if (Object.hasOwn(safetyLabels, count.name)) made.get(count.name)?.inc(boundedLabels(count, named), count.value)
    }
  }

  for (const [name, help] of Object.entries(counters) as [SafetyCounter, string][]) {
    const counter = new Counter({
      name: `nightshift_${name}_total`,
      help,
      labelNames: [...safetyLabels[name]],
      registers,
      // Every counter asks, and one reading serves them all.
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
  const memory: Memory = { ...emptyMemory(), recovering: new Map(recovering), models: new Map(models) }
  const words = { tools: toolNames, provider }
  const increments = rows.flatMap((row) => tally(row, memory, words))
  return { increments, memory: { recovering: [...memory.recovering], models: [...memory.models] } }
}

/** A value without a series of its name counts as `other`. */
function boundedLabels(count: Count, named: ReadonlyMap<string, ReadonlySet<string>>): Count['labels'] {
  const declared = safetyLabels[count.name as SafetyCounter]
  return Object.fromEntries(
    declared.map((label) => {
      const value = count.labels[label] ?? 'unknown'
      return [label, named.get(label)?.has(value) === false ? 'other' : value]
    }),
  )
}
