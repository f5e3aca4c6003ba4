import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { HttpError } from '../../clients/http.ts'
import type { Db } from '../../db/connect.ts'
import {
  connectionOf,
  type DeviceConnection,
  endConnection,
  endLostProcesses,
  endProcess,
  holdConnection,
  keepConnections,
  noteProcess,
} from '../../db/inventory/device-connections.ts'
import { deviceById, lockDevice } from '../../db/inventory/devices.ts'
import { sweepRelays } from '../../db/inventory/relays.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { listenTo, meshChannel, processChannel } from '../../db/notices.ts'
import type { Manifest } from '../../domain/mesh.ts'
import { closeCodes } from '../../domain/mesh-connection.ts'
import { askingOver, type BegunAnswer, type DeviceAsk, type DeviceWay } from '../../mesh/exchange.ts'
import type { DeviceLink } from '../../mesh/link.ts'
import { sealUnder } from '../../mesh/seal.ts'
import type { MeshKeys } from '../../mesh/sign.ts'
import { openRelays } from './relay.ts'

/** The connections of agents that connect to the API, as one process of the API sees them. */
export type DeviceConnections = {
  processId: string
  /**
   * Returns the way to a device whose agent connects here, whichever process holds the connection.
   */
  way(deviceId: string): DeviceWay
  /**
   * Takes over and welcomes the connection of an agent that proved its identity; the agent's
   * earlier connection ends.
   */
  hold(
    link: DeviceLink,
    from: { address: string; run: string; version: string; manifest: Manifest | null },
  ): Promise<void>
  /** Lists the devices that are connected to this process. */
  held(): string[]
  /** Tells all agents to connect elsewhere, and waits at most a few seconds for running answers. */
  stop(): Promise<void>
}

type Held = { link: DeviceLink; connection: string; run: string; manifestId: string | null }

const tickMs = 5_000
/** Milliseconds that a call waits for a device that is between two connections. */
const readyMs = 10_000
/**
 * Milliseconds for which a device counts as between two connections, from the end of its last
 * connection or the start of this process.
 */
const betweenMs = 60_000
const stopWithinMs = 3_000

type Options = { db: Db; log: Logger; keys: MeshKeys; name: string }

export function openConnections({ db, log, keys, name }: Options): DeviceConnections {
  const processId = randomUUID()
  const held = new Map<string, Held>()
  let isStopping = false
  const changes = waitersByName()
  const report = (error: unknown) => log.error({ err: error }, 'the database did not record connections of agents')
  const begin = (id: string, ask: DeviceAsk): Promise<BegunAnswer> | null => held.get(id)?.link.begin(ask) ?? null
  const world: World = { db, log, name, processId, startedMs: performance.now(), held, changes, report }
  const relays = openRelays({ db, seal: sealUnder(keys.root.key), processId, begin, report })

  async function beginAnywhere(id: string, ask: DeviceAsk): Promise<BegunAnswer> {
    const here = begin(id, ask)
    if (here) return await here
    const row = await connectionOf(db, id)
    if (row?.isConnected && row.processId !== null && row.processId !== processId)
      return await relays.ask({ ...row, processId: row.processId }, ask)
    throw new HttpError('connect', describeAbsence(id, row), true)
  }

  async function onDevice(id: string): Promise<void> {
    const own = held.get(id)
    const isAsked = relays.asked().includes(id)
    changes.wake(id)
    if (!own && !isAsked) return
    const row = await connectionOf(db, id)
    relays.onConnection(id, row?.isConnected ? row.connection : null)
    if (!own || isStopping || held.get(id) !== own) return
    if (row?.connection !== own.connection) return endReplaced(own, row !== null)
    await tellManifest(db, own)
  }

  async function tick(): Promise<void> {
    for (const id of await keepRows(world)) await onDevice(id)
    for (const id of relays.asked()) await onDevice(id)
    relays.onNotice('')
    await sweepRelays(db)
  }

  const notices = listenTo(db, [meshChannel, processChannel(processId)], {
    notice(channel, text) {
      if (channel === meshChannel) void onDevice(text).catch(report)
      else relays.onNotice(text)
    },
    up: () => void (isStopping || tick().catch(report)),
  })
  const timers = [
    every(tickMs, () => tick().catch(report)),
    // Polls for relayed answers only while no database notifications can be received.
    every(250, async () => {
      if (!notices.isListening() && relays.asked().length > 0) relays.onNotice('')
    }),
  ]

  return {
    processId,
    way: (id) => ({
      id,
      ready: (signal) => ready(world, id, signal),
      ...askingOver(id, (ask) => beginAnywhere(id, ask)),
    }),
    hold: (link, from) => holdLink(world, link, from),
    held: () => [...held.keys()],
    async stop() {
      isStopping = true
      for (const timer of timers) clearInterval(timer)
      await moveAll(world)
      await notices.stop()
    },
  }
}

/** State of this process about its connections. */
type World = Omit<Options, 'keys'> & {
  processId: string
  startedMs: number
  held: Map<string, Held>
  changes: ReturnType<typeof waitersByName>
  report(error: unknown): void
}

/**
 * Renews this process' rows of connections. Returns the devices whose connection this process lost.
 */
async function keepRows({ db, processId, name, held }: World): Promise<string[]> {
  await noteProcess(db, { id: processId, name })
  await endLostProcesses(db)
  const own = [...held].map(([id, { connection }]) => [id, connection] as const)
  const kept = await keepConnections(
    db,
    processId,
    own.map(([, connection]) => connection),
  )
  return own.flatMap(([id, connection]) => (kept.has(connection) ? [] : [id]))
}

/**
 * Tells all agents to connect to another process. Ends each connection once no call runs over it.
 */
async function moveAll({ db, processId, held, report }: World): Promise<void> {
  const links = () => [...held.values()].map(({ link }) => link)
  for (const link of links()) link.tell({ kind: 'move' })
  await endProcess(db, processId).catch(report)
  const untilMs = performance.now() + stopWithinMs
  while (links().some((link) => link.underWay() > 0) && performance.now() < untilMs) await sleep(50)
  for (const link of links()) link.end(closeCodes.move, 'this API process is stopping')
}

/** Waits, at most `readyMs`, for a device that is between two connections. */
async function ready(world: World, id: string, signal?: AbortSignal): Promise<void> {
  const { db, processId, startedMs, held, changes } = world
  const untilMs = performance.now() + readyMs
  while (!held.has(id) && !signal?.aborted) {
    const row = await connectionOf(db, id)
    const isHere = row?.isConnected && row.processId !== processId
    if (isHere || !isBetween(row, startedMs) || performance.now() > untilMs) return
    await changes.wait(id, 250)
  }
}

/**
 * Takes over the connection of an agent that proved its identity, in place of its earlier one, and
 * welcomes the agent.
 */
async function holdLink(world: World, link: DeviceLink, from: Parameters<DeviceConnections['hold']>[1]): Promise<void> {
  const { db, log, name, processId, held, changes, report } = world
  const { address, run, version, manifest } = from
  const id = link.device
  const connection = randomUUID()
  await noteProcess(db, { id: processId, name })
  const own = { link, connection, run, manifestId: manifest?.id ?? null }
  const before = held.get(id)
  const at = { deviceId: id, connection, processId, process: name, address, agentVersion: version }
  await recordConnection(db, at, before?.run === run)
  // Welcomes the agent only after the row is written, because any process may call the device after
  // the welcome.
  link.tell({ kind: 'welcome', manifest })
  held.set(id, own)
  if (before) endReplaced(before, true)
  changes.wake(id)
  void link.closed.then(async ({ code, reason }) => {
    if (held.get(id) === own) held.delete(id)
    log.info({ device: id, code, reason }, 'the connection of an agent ended')
    await endConnection(db, { deviceId: id, connection }).catch(report)
  })
}

/** Whether the device may be between two connections, in which case a call waits for it. */
function isBetween(row: DeviceConnection | null, startedMs: number): boolean {
  if (row === null) return false
  if (performance.now() - startedMs < betweenMs) return true
  return row.endedAt === null || Date.now() - Date.parse(row.endedAt) < betweenMs
}

function endReplaced({ link }: Held, isReplaced: boolean): void {
  if (isReplaced) link.end(closeCodes.replaced, 'another connection of this device replaced this one')
  else link.end(closeCodes.refused, 'this device may no longer connect')
}

/** Sends an agent the device's current manifest, if the agent has another one. */
async function tellManifest(db: Db, own: Held): Promise<void> {
  const device = await deviceById(db, own.link.device)
  if (!device?.manifest || device.manifest.id === own.manifestId) return
  own.manifestId = device.manifest.id
  own.link.tell({ kind: 'manifest', manifest: device.manifest })
}

/**
 * Records which process holds the device's connection. A replaced connection is also recorded in
 * the audit log.
 */
async function recordConnection(db: Db, at: Connection, isSameRun: boolean): Promise<void> {
  const { deviceId: id, address } = at
  await db.transaction().execute(async (trx) => {
    await lockDevice(trx, id)
    const last = await connectionOf(trx, id)
    await holdConnection(trx, at)
    if (!last?.isConnected) return
    const who = isSameRun ? 'the same run of the agent' : 'another run of the agent'
    const detail = `Connected from ${address} to ${at.process} in place of its connection from ${last.address} to ${last.process}: ${who}, with the same key`
    await recordAudit(trx, { who: id, what: 'device.connection_replaced', subject: id, detail, address })
  })
}
type Connection = Parameters<typeof holdConnection>[1]

/** Returns why a device whose agent connects here cannot be reached. */
export function describeAbsence(id: string, row: DeviceConnection | null): string {
  if (row === null) return `${id} calls out, and has not connected yet`
  return `${id} calls out, and is not connected${row.endedAt === null ? '' : ` since ${row.endedAt}`}`
}

function every(ms: number, act: () => Promise<unknown>): NodeJS.Timeout {
  return setInterval(act, ms).unref()
}

/** Lets callers wait for a change of a named object, until `wake` or until their time is over. */
function waitersByName() {
  const waiting = new Map<string, Set<() => void>>()
  return {
    wake(name: string) {
      for (const resolve of waiting.get(name) ?? []) resolve()
    },
    async wait(name: string, ms: number): Promise<void> {
      const all = waiting.get(name) ?? new Set()
      waiting.set(name, all)
      const { promise, resolve } = Promise.withResolvers<void>()
      all.add(resolve)
      const timer = setTimeout(resolve, ms)
      await promise
      clearTimeout(timer)
      all.delete(resolve)
      if (all.size === 0) waiting.delete(name)
    },
  }
}
