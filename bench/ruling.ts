import { rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { judgeCall } from '../activities/judge-call.ts'
import { connect, type Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { declareResources } from '../db/inventory/registry.ts'
import { eventsOf } from '../db/log/events.ts'
import { systemScope } from '../db/scope.ts'
import { readSettings } from '../db/settings.ts'
import { takeSitePolicy } from '../db/site-policies.ts'
import { standings } from '../db/trust/record.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { decideBySite } from '../safety/site/decide.ts'
import { readSitePolicy } from '../safety/site/read.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { pair, playPair, preparation, proposed } from '../test/support/played-pair.ts'
import { toolFacts } from '../tools/registry.ts'
import { fill } from './fill.ts'
import { median, percentile, report } from './stage.ts'

const ruleCount = Number(process.env.RULES ?? 500)
const rounds = 400
const shard = { kind: 'shard', id: 'db-osl-1' } as const

/**
 * Measures how much a 500-rule policy adds to the policy decision on a call (fold, the judge's
 * facts, rules). Alternates with an installation without a policy on the same server. Also measures
 * the cost of one rule, and a query of every pair's record over 100,000 rows.
 */
export async function ruling(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  const sites: Site[] = []
  try {
    for (const name of ['plain', 'ruled', 'filled']) sites.push(await openSite(postgres.url, name))
    const [plain, ruled, filled] = sites as [Site, Site, Site]
    const text = policyOf(ruleCount)
    const read = readSitePolicy(text, toolFacts, 'c0ffee')
    if (!read.ok) throw new Error(JSON.stringify(read.faults))
    await takeSitePolicy(ruled.db, { text, compiled: read.compiled, place: 'policy.yaml', commit: 'c0ffee' })
    const [without, with500] = await takenInTurn([await readRuling(plain), await readRuling(ruled)], rounds)
    const things = [{ names: [shard], labels: {} }]
    const call = { tool: pair.tool, type: pair.type, things, nowMs: Date.now(), silence: null }
    const decided = await tookEach(() => decideBySite(read.compiled, call), 20_000)
    const fillAt = { incidents: 4_000, rows: 100_000 }
    await fill(filled.url, fillAt.incidents, fillAt.rows, () => {})
    await makeWrites(filled.url)
    const settings = await readSettings(filled.db)
    const [record] = await takenInTurn([async () => void (await standings(systemScope(filled.db), settings))], 20)
    report('ruling', {
      'rulings of each': rounds,
      rules: ruleCount,
      'without a policy, median (ms)': round(median(without as number[])),
      'with the rules, median (ms)': round(median(with500 as number[])),
      'ratio (at most 1.2)': round(median(with500 as number[]) / median(without as number[])),
      'what the rules say of a call, median (µs)': round(decided * 1_000),
      'a rule by itself (ns)': Math.round((decided * 1_000_000) / ruleCount),
      'rows of the log': fillAt.rows,
      'record of every pair, median (ms, at most 200)': round(median(record as number[])),
      'record of every pair, 95 % (ms)': round(percentile(record as number[], 95)),
    })
  } finally {
    for (const { db } of sites) await db.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

/** Turns a fifth of the judged, begun and ended calls of the filled log into writes. */
async function makeWrites(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('set session_replication_role = replica')
  await client.query(`
    update incident_event set metadata = metadata || jsonb_build_object('effect', 'write', 'tool', 'converge_' || attempt || id % 7)
    where kind in ('call_judged', 'tool_started', 'tool_finished') and seq % 20 < 4`)
  await client.query('vacuum (analyze) incident_event')
  await client.end()
}

type Site = { db: Db; url: string }

async function openSite(url: string, name: string): Promise<Site> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`create database ${name}`)
  await client.end()
  const own = new URL(url)
  own.pathname = `/${name}`
  await migrateToLatest(own.href)
  const db = connect(own.href, { max: 4 })
  const resources = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ kind: 'shard' as const, id: n === 0 ? shard.id : `s-${n}`, aliases: [] },
    attributes: { env: n % 2 ? 'prod' : 'test' },
  }))
  const declared = { resources, relations: [], isComplete: true } as never
  await db.transaction().execute((trx) => declareResources(trx, { name: 'platform', hasAuthority: true }, declared))
  return { db, url: own.href }
}

/**
 * Prepares a policy decision on a call that writes. Returns a function that makes the decision in a
 * transaction. The function reads all data again.
 */
async function readRuling({ db, url }: Site): Promise<() => Promise<void>> {
  const owner = connect(url, { owner: true, max: 1 })
  const { incidentId } = await playPair({ db, owner }).propose()
  await owner.destroy()
  const incident = await incidentById(db, incidentId)
  if (!incident) throw new Error(`${incidentId} is gone`)
  return async () => {
    await db.transaction().execute(async (trx) => {
      const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId: null }
      const events = await eventsOf(trx, incidentId)
      const settings = await readSettings(trx)
      const call = { ...proposed, edit: null }
      const prepared = { ok: true as const, preparation }
      await judgeCall(trx, { place, call, prepared, incident, events, earlier: [], settings })
    })
  }
}

/** Measures the functions in turn, in milliseconds, so that a busy machine affects all of them. */
async function takenInTurn(acts: (() => Promise<void>)[], times: number): Promise<number[][]> {
  const took = acts.map((): number[] => [])
  for (let n = -10; n < times; n += 1)
    for (const [at, act] of acts.entries()) {
      const startedAt = performance.now()
      await act()
      if (n >= 0) took[at]?.push(performance.now() - startedAt)
    }
  return took
}

/**
 * Returns the milliseconds per call in the best of several rounds, because other work of the
 * machine is not a cost of the rules.
 */
async function tookEach(act: () => unknown, times: number): Promise<number> {
  const rounds = Array.from({ length: 7 }, () => {
    const startedAt = performance.now()
    for (let n = 0; n < times; n += 1) act()
    return (performance.now() - startedAt) / times
  })
  return Math.min(...rounds)
}

const round = (ms: number) => Math.round(ms * 100) / 100

/**
 * Creates the rules of a large installation. Most rules are about named resources or labels, and
 * some apply only on some days. None of these rules decides the measured call.
 */
function policyOf(count: number): string {
  const rules = Array.from({ length: count }, (_, n) => {
    const resource = [
      `{ kind: shard, id: [s-${n}, s-${n + 1_000}] }`,
      `{ kind: host, id: h-${n} }`,
      `{ kind: shard, labels: { env: e-${n} } }`,
      `{ labels: { env: staging, tier: t-${n} } }`,
    ][n % 4]
    const when = n % 5 === 0 ? ', during: sundays' : ''
    return `  - { name: r-${n}, resource: ${resource}${when}, action: ask }`
  })
  const window = 'timezone: Europe/Oslo, start: 2026-01-04T02:00, end: 2026-01-04T06:00, rrule: FREQ=WEEKLY;BYDAY=SU'
  return `version: 1\nwindows:\n  sundays: { ${window} }\nrules:\n${rules.join('\n')}\n`
}
