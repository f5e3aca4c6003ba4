import { parseArgs } from 'node:util'
import { loadSql } from '../../safety/sql/inspect.ts'
import { live } from './life.ts'
import type { Gate } from './world.ts'

/**
 * `npm run simulate -- --seeds 1000000`: plays so many lives and prints what broke. `--seed 42` prints one life row by row;
 * `--without discovery` switches a gate off, to see that somebody notices.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '0' },
    seed: { type: 'string' },
    without: { type: 'string' },
  },
})
await loadSql()
const without = (values.without ?? null) as Gate | null

if (values.seed !== undefined) {
  const { world, violations } = await live(Number(values.seed), { without })
  for (const incident of world.incidents.values()) {
    console.log(
      `\n${incident.id} ${incident.type} ${incident.resource.kind}:${incident.resource.id} ${incident.mood} model, ${incident.status}`,
    )
    for (const row of incident.rows) {
      const { tool, code, outcome, verdict } = row.metadata as Record<string, string | undefined>
      const words = [tool, verdict, code, outcome].filter(Boolean).join(' ')
      console.log(
        `${String(row.seq).padStart(4)} ${row.at.slice(11, 23)} #${row.attempt} t${row.turn ?? '-'} ${row.kind.padEnd(19)} ${words}`,
      )
    }
  }
  for (const effect of world.effects.values())
    console.log(`effect ${effect.key} ${effect.tool} ${effect.status} ×${effect.executions}`)
  for (const each of violations) console.log(`BROKEN ${each.invariant} ${each.incidentId}: ${each.what}`)
  process.exit(violations.length > 0 ? 1 : 0)
}

const seeds = Number(values.seeds)
const from = Number(values.from)
const startedAt = performance.now()
const tally = { rows: 0, effects: 0, approvals: 0, resolved: 0, escalated: 0, refused: 0 }
let broken = 0
for (let seed = from; seed < from + seeds; seed += 1) {
  const { world, violations } = await live(seed, { without })
  for (const incident of world.incidents.values()) {
    tally.rows += incident.rows.length
    if (incident.status === 'resolved') tally.resolved += 1
    if (incident.status === 'escalated') tally.escalated += 1
    for (const row of incident.rows)
      if (row.kind === 'call_judged' && row.metadata.verdict === 'refuse') tally.refused += 1
  }
  tally.effects += world.effects.size
  tally.approvals += world.approvals.size
  if (violations.length === 0) continue
  broken += 1
  if (broken <= 10)
    for (const each of violations.slice(0, 3)) console.log(`seed ${seed}: ${each.invariant} ${each.what}`)
  if (broken === 10 && without) break
}
const seconds = (performance.now() - startedAt) / 1000
console.log(
  `${seeds} lives in ${seconds.toFixed(1)} s (${Math.round((seeds / seconds) * 60)} a minute): ${broken} broke an invariant`,
)
console.log(JSON.stringify({ simulate: { seeds, from, broken, ...tally, seconds: Math.round(seconds) } }))
process.exit(broken > 0 ? 1 : 0)
