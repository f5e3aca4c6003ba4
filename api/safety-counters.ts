import { Counter, type Registry } from 'prom-client'
import type { Db } from '../db/connect.ts'
import { type StreamPosition, streamAfter, streamEnd } from '../db/events.ts'
import {
  safetyCounters as counters,
  type Recovering,
  type SafetyCounter,
  safetyLabels,
  tally,
} from '../safety/tally.ts'
import { tools } from '../tools/registry.ts'

const batch = 1000
/** What one scrape reads at most: the next one goes on from there. */
const batchesPerScrape = 20
const toolNames: ReadonlySet<string> = new Set(tools.keys())

/**
 * The kernel's counters, folded from the log: each scrape reads the rows written since the one before, so nothing is counted
 * that is not on record, and a worker that dies takes no count with it. They begin at zero with the first scrape, which the
 * process makes itself when it starts; where several API processes run, each counts every row: take one of them, or the maximum.
 */
export function safetyCounters(db: Db, registers: Registry[]): void {
  const recovering: Recovering = new Map()
  let position: StreamPosition | null = null
  let reading: Promise<void> | null = null
  const made = new Map<SafetyCounter, Counter>()

  async function catchUp(): Promise<void> {
    position ??= await streamEnd(db)
    for (let read = 0; read < batchesPerScrape; read += 1) {
      const rows = await streamAfter(db, position, { limit: batch })
      for (const row of rows) {
        for (const { counter, labels } of tally(row, recovering, toolNames)) made.get(counter)?.inc(labels)
      }
      position = rows.at(-1)?.position ?? position
      if (rows.length < batch) return
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
