import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Spine, startSpine } from '../test/support/spine.ts'
import { startServers } from './servers.ts'
import { median, percentile, report } from './stage.ts'

const bodies = 20
const alertsPerBody = 100
const stormTypes = ['storm_a', 'storm_b', 'storm_c']
const criticals = 10
const modelDelayMs = 12_000
const watchedMs = Number(process.env.WATCH_SECONDS ?? 180) * 1000

/**
 * Measures an alert storm at night, with the real API, worker, PostgreSQL (durable) and Temporal.
 * First three incident types are investigated with a model that takes 12 s. Then 2,000 new alerts
 * of 30 types arrive in 20 requests at once, with single alerts beside them, then ten critical
 * alerts of ten new types. Reports how fast they were stored, how long each critical incident
 * waited for its claim, and how long workers were idle while incidents waited. `WATCH_SECONDS=60`
 * watches shorter.
 */
export async function storm(): Promise<void> {
  const servers = await startServers({ durable: true })
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    databaseUrl: servers.databaseUrl,
    temporalAddress: servers.temporalAddress,
    environment: {
      // Sets the same variables as the image and the start.
      MALLOC_ARENA_MAX: '2',
      NODE_OPTIONS: process.env.NODE_OPTIONS || '--max-semi-space-size=16',
      RUNBOOK_DELAY_MS: String(modelDelayMs),
      QUEUE_INTERVAL_SECONDS: '60',
      LAB_PROBE_INTERVAL_MS: '3600000',
    },
  })
  try {
    for (const type of stormTypes)
      await post(
        spine,
        Array.from({ length: 30 }, (_, n) => alertOf(type, n)),
      )
    await spine.until('a leader to be at work', async () => (await atWork(spine)) > 0, 90_000)
    const taken = await takeStorm(spine)
    const memory = { api: 0, worker: 0 }
    const { waits, idleMs, max } = await criticalWaits(spine, memory)
    const ofOneType = waits.filter(({ type }) => type === 'critical_same')
    const ofTen = waits.filter(({ type }) => type !== 'critical_same')
    report('storm', {
      'alerts stored a second': Math.round((bodies * alertsPerBody) / taken.seconds),
      'a single alert beside them, median (ms)': Math.round(median(taken.single)),
      'a single alert beside them, 99th per cent (ms)': Math.round(percentile(taken.single, 99)),
      'ten critical types: claimed, 90th per cent (s)': lateSeconds(ofTen.map(({ claimedMs }) => claimedMs)),
      'ten critical types: model asked, 90th per cent (s, at most 60)': lateSeconds(
        ofTen.map(({ askedMs }) => askedMs),
      ),
      'ten of one type: claimed, 90th per cent (s)': lateSeconds(ofOneType.map(({ claimedMs }) => claimedMs)),
      'ten of one type: model asked, 90th per cent (s, at most 60)': lateSeconds(
        ofOneType.map(({ askedMs }) => askedMs),
      ),
      'nobody at work although somebody waits (s)': seconds(idleMs),
      'max at work at once': max,
      'API, most memory (MB)': memory.api,
      'worker, most memory (MB, at most 450)': memory.worker,
    })
  } finally {
    await spine.stop()
    await servers.stop()
  }
}

const seconds = (ms: number): number => Math.round(ms / 100) / 10

/**
 * Returns the wait in seconds that nine of ten incidents do not exceed. Returns "never" if more
 * than one of ten incidents is still waiting.
 */
function lateSeconds(waits: readonly (number | null)[]): number | string {
  const known = waits.filter((ms) => ms !== null).toSorted((a, b) => a - b)
  const at = Math.ceil(0.9 * criticals) - 1
  return known[at] === undefined ? `never, ${known.length} of ${criticals}` : seconds(known[at])
}

function alertOf(type: string, n: number, severity = 'warning') {
  const labels = { alertname: type, severity, target: `${type}-${n}`, job: 'node', instance: `unknown-${n}:9100` }
  const annotations = { summary: `${type} on target ${n}`, description: 'The disk fills. '.repeat(12) }
  return { status: 'firing', labels, annotations, startsAt: new Date().toISOString(), fingerprint: `${type}-${n}` }
}

async function post(spine: Spine, alerts: readonly object[]): Promise<void> {
  const body = { version: '4', status: 'firing', receiver: 'bench', groupKey: 'bench', alerts }
  const { status } = await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
  if (status !== 202) throw new Error(`the API answered ${status}`)
}

async function takeStorm(spine: Spine): Promise<{ seconds: number; single: number[] }> {
  const single: number[] = []
  let isOver = false
  const beside = (async () => {
    for (let n = 0; !isOver; n += 1) {
      const startedAt = performance.now()
      await post(spine, [alertOf('single', n)])
      single.push(performance.now() - startedAt)
      await sleep(10)
    }
  })()
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: bodies }, (_, at) =>
      post(
        spine,
        Array.from({ length: alertsPerBody }, (_, n) =>
          alertOf(`type_${(at * alertsPerBody + n) % 30}`, at * 1000 + n),
        ),
      ),
    ),
  )
  const tookMs = performance.now() - startedAt
  isOver = true
  await beside
  return { seconds: tookMs / 1000, single }
}

/**
 * How long a critical incident waited for its claim and for its first request to the model, in ms.
 * Null if the incident still waited at the end of the watch.
 */
type CriticalWait = { type: string; claimedMs: number | null; askedMs: number | null }

async function criticalWaits(spine: Spine, memory: { api: number; worker: number }) {
  const postedAt = Date.now()
  for (let n = 0; n < criticals; n += 1)
    await post(spine, [alertOf(`critical_${n}`, n, 'critical'), alertOf('critical_same', n, 'critical')])
  let idleMs = 0
  let max = 0
  let waits: CriticalWait[] = []
  for (let before = Date.now(); Date.now() - postedAt < watchedMs; ) {
    await sleep(250)
    const now = Date.now()
    const busy = await atWork(spine)
    max = Math.max(max, busy)
    if (busy === 0) idleMs += now - before
    before = now
    waits = await waitsOf(spine)
    memory.api = Math.max(memory.api, residentMegabytes('api/main.ts'))
    memory.worker = Math.max(memory.worker, residentMegabytes('worker/main.ts'))
    if (waits.length === 2 * criticals && waits.every(({ askedMs }) => askedMs !== null)) break
  }
  return { waits, idleMs, max }
}

/**
 * Computes the waits from the rows. A model response states its duration, which gives the time of
 * its request.
 */
async function waitsOf({ db }: Spine): Promise<CriticalWait[]> {
  const { rows } = await sql<CriticalWait>`
    select type,
      (select extract(epoch from min(at) - created_at) * 1000 from incident_event
        where incident_id = incident.id and kind = 'claimed')::float8 as claimed_ms,
      (select extract(epoch from min(at - make_interval(secs => (metadata->>'durationMs')::float8 / 1000)) - created_at) * 1000
        from incident_event where incident_id = incident.id and kind = 'model_answered')::float8 as asked_ms
    from incident where type like 'critical%'`.execute(db)
  return rows
}

async function atWork({ db }: Spine): Promise<number> {
  const rows = await db.selectFrom('incident').select('id').where('status', '=', 'investigating').execute()
  return rows.length
}

/** Returns the memory of the largest process that runs this entry file. */
function residentMegabytes(entry: string): number {
  const lines = execFileSync('ps', ['-eo', 'rss=,args='], { encoding: 'utf8' }).split('\n')
  const sizes = lines.filter((line) => line.includes(entry)).map((line) => Number(line.trim().split(/\s+/)[0]))
  return Math.round(Math.max(0, ...sizes) / 1024)
}
