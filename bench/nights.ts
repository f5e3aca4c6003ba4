import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Incident } from '../domain/incident.ts'
import type { FaultName } from '../lab/state.ts'
import { type PartName, type Spine, startSpine } from '../test/support/spine.ts'
import { startServers } from './servers.ts'
import { median } from './stage.ts'

/**
 * Simulates two nights with the real product and the lab's real processes, one with the page gate
 * at five minutes and one without. Both have the same critical faults, up to three at a time on
 * different nodes, and randomly killed workers and API servers. Reports, as the lab's oracle
 * judges, who would be woken, whether a page came late, and whether a critical incident was missed.
 */

const atOnce = 3
const gateSeconds = 300
/** Seconds within which a process that was killed delivers pages again. */
const graceSeconds = 60
/**
 * The number of faults in one lab. Each node is broken once, because a second fault within a day
 * would go to people.
 */
const perLab = 40
const webShards = 24

type Target = { fault: FaultName; target: string }
/** A message about an incident that wakes somebody: its type, and when it arrived. */
type Wake = { type: string; atMs: number }
type Told = { fault: string; incident: Incident | null; wakes: Wake[]; isHealthy: boolean; isSpared: boolean }

export async function nights(faults: number): Promise<void> {
  const gated = await night(faults, gateSeconds)
  const open = await night(faults, 0)
  const [withGate, without] = [figuresOf(gated, gateSeconds), figuresOf(open, 0)]
  const names = Object.keys(without)
  const width = Math.max(...names.map((name) => name.length))
  console.log(`\n${'two nights'.padEnd(width)}  gate ${gateSeconds} s  gate off`)
  for (const name of names)
    console.log(`${name.padEnd(width)}  ${String(withGate[name]).padStart(10)}  ${String(without[name]).padStart(8)}`)
  console.log(JSON.stringify({ bench: 'nights', [`gate ${gateSeconds} s`]: withGate, 'gate off': without }))
}

function figuresOf(told: readonly Told[], hold: number): Record<string, string | number> {
  const repaired = told.filter(({ incident }) => incident?.outcome === 'repaired')
  const woken = (each: readonly Told[]) => each.filter(({ wakes }) => wakes.length > 0).length
  const missed = told.filter(({ incident, wakes, isSpared, isHealthy }) => {
    if (incident === null) return true
    return wakes.length === 0 && !(isSpared && isHealthy)
  })
  const delays = told.flatMap(({ incident, wakes }) => {
    const page = wakes.find(({ type }) => type === 'incident.critical')
    return incident && page ? [(page.atMs - Date.parse(incident.createdAt)) / 1_000] : []
  })
  return {
    faults: told.length,
    'repaired by the agent': repaired.length,
    'incidents that woke somebody': woken(told),
    'of the repaired ones': woken(repaired),
    'pages that were not needed': told.filter(({ isSpared }) => isSpared).length,
    'criticals missed': missed.length,
    'page after the opening, median (s)': delays.length === 0 ? '–' : Math.round(median(delays)),
    'the latest (s)': delays.length === 0 ? '–' : Math.round(Math.max(...delays)),
    'later than promised': delays.filter((seconds) => seconds > hold + graceSeconds).length,
  }
}

async function night(faults: number, hold: number): Promise<Told[]> {
  const told: Told[] = []
  for (let from = 0; from < faults; from += perLab) {
    told.push(...(await play(Math.min(perLab, faults - from), hold, from)))
  }
  return told
}

async function play(faults: number, hold: number, seed: number): Promise<Told[]> {
  const servers = await startServers()
  const wakes = new Map<string, Wake[]>()
  const receiver = await receivePages(wakes)
  const spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'api2', 'worker', 'worker2'],
    databaseUrl: servers.databaseUrl,
    temporalAddress: servers.temporalAddress,
    environment: { LAB_WEB_SHARDS: String(webShards), WATCHDOG_INTERVAL_SECONDS: '5' },
  })
  let isOver = false
  let killing: Promise<number> = Promise.resolve(0)
  try {
    const settings: Record<string, string> = { 'page.hold': String(hold), 'agent.max_followers': '40' }
    for (const name of ['critical', 'approval', 'escalated', 'news']) settings[`webhook.${name}.url`] = receiver.url
    for (const [key, value] of Object.entries(settings))
      await spine.owner
        .insertInto('platformConfig')
        .values({ key, value } as never)
        .execute()
    await spine.until('the inventory', async () => {
      const { items } = await spine.get<{ items: unknown[] }>('/resources?q=node-web&kind=node&limit=100')
      return items.length >= 2 * webShards
    })
    killing = killAtRandom(spine, randomOf(seed + 1), () => isOver)
    const told: Told[] = []
    const all = faultsOf(faults)
    for (let at = 0; at < all.length; at += atOnce) {
      told.push(...(await breakRound(spine, all.slice(at, at + atOnce), wakes)))
      console.error(`gate ${hold} s: ${told.length} of ${all.length} faults`)
    }
    return told
  } finally {
    isOver = true
    console.error(`gate ${hold} s: ${await killing} kills`)
    await spine.stop()
    await servers.stop()
    receiver.stop()
  }
}

/**
 * Lists faults for a night. Seven of ten stop a service, which a run repairs. Three of ten need an
 * approval: two bad deploys and a lost host.
 */
function faultsOf(count: number): Target[] {
  const shards = Array.from(
    { length: webShards },
    (_, n) => `web-${n % 2 === 0 ? 'osl' : 'ams'}-${Math.floor(n / 2) + 1}`,
  )
  const services = shards.map((shard): Target => ({ fault: 'service_down', target: `node-${shard}a` }))
  const deploys = shards.map((shard): Target => ({ fault: 'bad_deploy', target: `node-${shard}b` })).toReversed()
  const others = shards.map((shard): Target => ({ fault: 'service_down', target: `node-${shard}b` }))
  const hosts = ['host-osl-1', 'host-ams-1', 'host-osl-3', 'host-ams-3'].map(
    (target): Target => ({ fault: 'host_down', target }),
  )
  return Array.from({ length: count }, (_, n) => {
    const kind = n % 10
    const chosen = kind === 4 || kind === 8 ? deploys.shift() : kind === 6 ? hosts.shift() : services.shift()
    return chosen ?? (others.shift() as Target)
  })
}

async function breakRound(
  spine: Spine,
  targets: readonly Target[],
  wakes: ReadonlyMap<string, Wake[]>,
): Promise<Told[]> {
  const known = new Set((await askEither(spine, () => spine.incidents('?limit=200'))).map(({ id }) => id))
  await Promise.all(targets.map(({ fault, target }) => spine.lab.break(fault, target)))
  const own = async () =>
    (await askEither(spine, () => spine.incidents('?limit=200'))).filter(
      ({ id, severity }) => !known.has(id) && severity === 'critical',
    )
  const isAbout = (incident: Incident, { fault, target }: Target) =>
    incident.type === fault && (incident.resource?.id === target || target.startsWith(`node-${incident.resource?.id}`))
  const told = await spine
    .until(
      'each fault to be repaired or to have woken somebody',
      async () => {
        const incidents = await own()
        const found = targets.map((each) => incidents.find((incident) => isAbout(incident, each)) ?? null)
        const spared = await sparedAmong(spine, found)
        const isSettled = found.every(
          (incident) =>
            incident !== null &&
            (spared.has(incident.id) || wakes.has(incident.id)) &&
            ['resolved', 'escalated', 'awaiting_approval'].includes(incident.status),
        )
        return isSettled && { found, spared }
      },
      (gateSeconds + 2 * graceSeconds) * 1_000,
    )
    .catch(async (error) => {
      console.error(String(error).slice(0, 300))
      const incidents = await own()
      const found = targets.map((each) => incidents.find((incident) => isAbout(incident, each)) ?? null)
      return { found, spared: await sparedAmong(spine, found) }
    })
  const judged = await Promise.all(
    targets.map(async ({ fault, target }, index): Promise<Told> => {
      const incident = told.found[index] ?? null
      const { healthy } = await spine.lab.oracle(fault, target)
      const own = (incident && wakes.get(incident.id)) ?? []
      return {
        fault,
        incident,
        wakes: own,
        isHealthy: healthy,
        isSpared: incident !== null && told.spared.has(incident.id),
      }
    }),
  )
  await endRound(spine, own)
  return judged
}

/** Ends a round: heals the lab as a person would, and cancels the incidents that are still open. */
async function endRound(spine: Spine, own: () => Promise<Incident[]>): Promise<void> {
  await spine.lab.heal()
  await spine.until('what is left to end', async () => {
    const left = (await own()).filter(({ status }) => !['resolved', 'escalated', 'cancelled'].includes(status))
    for (const { id } of left) await spine.post(`/incidents/${id}/cancel`, { reason: 'done by hand' }).catch(() => null)
    return left.length === 0
  })
}

async function sparedAmong(spine: Spine, found: readonly (Incident | null)[]): Promise<Set<string>> {
  const ids = found.flatMap((incident) => incident?.id ?? [])
  if (ids.length === 0) return new Set()
  const rows = await spine.db
    .selectFrom('delivery')
    .select('incidentId')
    .where('incidentId', 'in', ids)
    .where('releasedWhy', '=', 'repaired')
    .execute()
  return new Set(rows.map(({ incidentId }) => incidentId))
}

/** Sends a request to both API servers in turn until one responds. */
async function askEither<T>(spine: Spine, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    for (const url of [spine.url, spine.url2]) {
      spine.talkTo(url)
      const answer = await ask().catch(() => null)
      if (answer !== null) return answer
    }
    await sleep(200)
  }
}

async function killAtRandom(spine: Spine, random: () => number, isOver: () => boolean): Promise<number> {
  const parts: PartName[] = ['worker', 'worker2', 'api', 'api2']
  let kills = 0
  while (!isOver()) {
    await sleep(6_000 + random() * 12_000)
    if (isOver()) break
    const part = parts[Math.floor(random() * parts.length)] as PartName
    await spine.kill(part)
    kills += 1
    await sleep(random() * 4_000)
    await spine.start(part).catch((error) => console.error(`${part} did not come back: ${error}`))
  }
  return kills
}

async function receivePages(wakes: Map<string, Wake[]>): Promise<{ url: string; stop(): void }> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { type, data } = JSON.parse(body) as { type: string; data: { page: boolean; incident: { id: string } } }
    if (data.page) wakes.set(data.incident.id, [...(wakes.get(data.incident.id) ?? []), { type, atMs: Date.now() }])
    response.writeHead(200).end('ok')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() }
}

/** Returns a generator with the same numbers in every run. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
