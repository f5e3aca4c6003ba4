import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { loadSql } from '../../safety/sql/inspect.ts'
import { live } from './life.ts'
import type { Gate } from './world.ts'

/**
 * `npm run simulate -- --seeds 1000000`: plays so many lives and prints what broke; `--jobs 2` uses
 * two processes. `--seed 42` prints one life row by row; `--without discovery` switches a gate off,
 * to see that an invariant breaks.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '0' },
    jobs: { type: 'string', default: '1' },
    seed: { type: 'string' },
    without: { type: 'string' },
  },
})
const without = (values.without ?? null) as Gate | null

type Tally = Record<
  'seeds' | 'broken' | 'rows' | 'effects' | 'approvals' | 'resolved' | 'escalated' | 'refused',
  number
>

/** Lives of a process: then it is heard of, and its memory is free again. */
const livesPerProcess = 10_000
const seeds = Number(values.seeds)
const from = Number(values.from)
const jobs = Math.min(Number(values.jobs), availableParallelism())
await loadSql()
if (values.seed !== undefined) await showLife(Number(values.seed))
const startedAt = performance.now()
const tally = jobs > 1 ? await liveInProcesses() : await liveAll(from, seeds)
const seconds = (performance.now() - startedAt) / 1000
console.log(
  `${seeds} lives in ${seconds.toFixed(1)} s (${Math.round((seeds / seconds) * 60)} a minute): ${tally.broken} broke an invariant`,
)
console.log(JSON.stringify({ simulate: { from, ...tally, seconds: Math.round(seconds) } }))
process.exit(tally.broken > 0 ? 1 : 0)

function tallyOf(lives: number): Tally {
  return { seeds: lives, broken: 0, rows: 0, effects: 0, approvals: 0, resolved: 0, escalated: 0, refused: 0 }
}

async function liveAll(first: number, count: number): Promise<Tally> {
  const sums = tallyOf(count)
  for (let seed = first; seed < first + count; seed += 1) {
    const { world, violations } = await live(seed, { without })
    for (const incident of world.incidents.values()) {
      sums.rows += incident.rows.length
      if (incident.status === 'resolved') sums.resolved += 1
      if (incident.status === 'escalated') sums.escalated += 1
      for (const row of incident.rows)
        if (row.kind === 'call_judged' && row.metadata.verdict === 'refuse') sums.refused += 1
    }
    sums.effects += world.effects.size
    sums.approvals += world.approvals.size
    if (violations.length === 0) continue
    sums.broken += 1
    if (sums.broken <= 10)
      for (const each of violations.slice(0, 3)) console.log(`seed ${seed}: ${each.invariant} ${each.what}`)
    if (sums.broken === 10 && without) break
  }
  return sums
}

async function liveInProcesses(): Promise<Tally> {
  const run = promisify(execFile)
  const firsts = Array.from({ length: Math.ceil(seeds / livesPerProcess) }, (_, n) => from + n * livesPerProcess)
  const sums = tallyOf(0)
  const work = async () => {
    for (let first = firsts.shift(); first !== undefined; first = firsts.shift()) {
      const count = Math.min(livesPerProcess, from + seeds - first)
      const options = ['--seeds', `${count}`, '--from', `${first}`, ...(without ? ['--without', without] : [])]
      const lived = run(process.execPath, [fileURLToPath(import.meta.url), ...options])
      // One that broke an invariant exits with 1, and has printed the same summary.
      const { stdout } = await lived.catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }))
      const lines = stdout.trim().split('\n')
      const { simulate } = JSON.parse(lines.at(-1) || '{}') as { simulate?: Tally }
      if (!simulate) throw new Error(`the lives from seed ${first} on ended without a summary`)
      for (const line of lines) if (line.startsWith('seed ')) console.log(line)
      for (const key of Object.keys(sums) as (keyof Tally)[]) sums[key] += simulate[key]
      if (sums.seeds % (10 * livesPerProcess) === 0)
        console.log(
          `${sums.seeds} of ${seeds} lives, ${sums.broken} broken, ${Math.round((performance.now() - startedAt) / 1000)} s`,
        )
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return sums
}

async function showLife(seed: number): Promise<never> {
  const { world, violations } = await live(seed, { without })
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
