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

/** The connections of agents that call out, as one process of the API sees them. */
export type DeviceConnections = {
  processId: string
  /** The way to a device that calls out, whichever process it is connected to. */
  way(deviceId: string): DeviceWay
  /** Takes and welcomes the connection of a proved agent; its earlier one ends. */
  hold(
    link: DeviceLink,
    from: { address: string; run: string; version: string; manifest: Manifest | null },
  ): Promise<void>
  /** Devices that are connected to this process. */
  held(): string[]
  /** Sends all agents elsewhere and waits, some seconds at most, for answers under way. */
  stop(): Promise<void>
}

type Held = { link: DeviceLink; connection: string; run: string; manifestId: string | null }

const tickMs = 5_000
/** A call waits so long for a device that is between two connections. */
const readyMs = 10_000
/**
 * A device is between two connections if its last one ended within this, or while nobody could take
 * it.
 */
const betweenMs = 60_000
const stopWithinMs = 3_000

type Options = { db: Db; log: Logger; keys: MeshKeys; name: string }

export function openConnections({ db, log, keys, name }: Options): DeviceConnections {
  const processId = randomUUID()
  const startedMs = performance.now()
  const held = new Map<string, Held>()
  let isStopping = false
  const changes = waitersByName()
  const report = (error: unknown) => log.error({ err: error }, 'connections of agents: the database did not do it')
  const begin = (id: string, ask: DeviceAsk): Promise<BegunAnswer> | null => held.get(id)?.link.begin(ask) ?? null
  const relays = openRelays({ db, seal: sealUnder(keys.root.key), processId, begin, report })

  async function beginAnywhere(id: string, ask: DeviceAsk): Promise<BegunAnswer> {
    const here = begin(id, ask)
    if (here) return await here
    const row = await connectionOf(db, id)
    if (row?.isConnected && row.processId !== null && row.processId !== processId)
      return await relays.ask({ ...row, processId: row.processId }, ask)
    throw new HttpError('connect', describeAbsence(id, row), true)
  }

  async function ready(id: string, signal?: AbortSignal): Promise<void> {
    const untilMs = performance.now() + readyMs
    while (!held.has(id) && !signal?.aborted) {
      const row = await connectionOf(db, id)
      const isHere = row?.isConnected && row.processId !== processId
      if (isHere || !isBetween(row) || performance.now() > untilMs) return
      await changes.wait(id, 250)
    }
  }

  function isBetween(row: DeviceConnection | null): boolean {
    if (row === null) return false
    if (performance.now() - startedMs < betweenMs) return true
    return row.endedAt === null || Date.now() - Date.parse(row.endedAt) < betweenMs
  }

  async function onDevice(id: string): Promise<void> {
    const own = held.get(id)
    const isAsked = relays.asked().includes(id)
    changes.wake(id)
    if (!own && !isAsked) return
    const row = await connectionOf(db, id)
    relays.onConnection(id, row?.isConnected ? row.connection : null)
    if (!own || isStopping || held.get(id) !== own) return
    if (row?.connection !== own.connection) {
      const reason = row ? 'another connection of this device took its place' : 'this device may not connect any more'
      own.link.end(row ? closeCodes.replaced : closeCodes.refused, reason)
      return
    }
    const device = await deviceById(db, id)
    if (!device?.manifest || device.manifest.id === own.manifestId) return
    own.manifestId = device.manifest.id
    own.link.tell({ kind: 'manifest', manifest: device.manifest })
  }

  async function tick(): Promise<void> {
    await noteProcess(db, { id: processId, name })
    await endLostProcesses(db)
    const kept = await keepConnections(
      db,
      processId,
      [...held.values()].map(({ connection }) => connection),
    )
    for (const [id, { connection }] of held) if (!kept.has(connection)) await onDevice(id)
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
    // Only while nobody can tell us.
    every(250, async () => {
      if (!notices.isListening() && relays.asked().length > 0) relays.onNotice('')
    }),
  ]

  return {
    processId,
    way: (id) => ({
      id,
      ready: (signal) => ready(id, signal),
      ...askingOver(id, (ask) => beginAnywhere(id, ask)),
    }),
    async hold(link, { address, run, version, manifest }) {
      const id = link.device
      const connection = randomUUID()
      await noteProcess(db, { id: processId, name })
      const own = { link, connection, run, manifestId: manifest?.id ?? null }
      const before = held.get(id)
      await db.transaction().execute(async (trx) => {
        await lockDevice(trx, id)
        const last = await connectionOf(trx, id)
        const at = { deviceId: id, connection, processId, process: name, address, agentVersion: version }
        await holdConnection(trx, at)
        if (!last?.isConnected) return
        const who = before?.run === run ? 'the same run of its agent' : 'another run of its agent'
        const detail = `Connected from ${address} to ${name} in place of its connection from ${last.address} to ${last.process}: ${who}, with the same key`
        await recordAudit(trx, { who: id, what: 'device.connection_replaced', subject: id, detail, address })
      })
      // Its row is there: from the welcome on any process can ask it.
      link.tell({ kind: 'welcome', manifest })
      held.set(id, own)
      before?.link.end(closeCodes.replaced, 'another connection of this device took its place')
      changes.wake(id)
      void link.closed.then(async ({ code, reason }) => {
        if (held.get(id) === own) held.delete(id)
        log.info({ device: id, code, reason }, 'the connection of an agent ended')
        await endConnection(db, { deviceId: id, connection }).catch(report)
      })
    },
    held: () => [...held.keys()],
    async stop() {
      isStopping = true
      for (const timer of timers) clearInterval(timer)
      for (const { link } of held.values()) link.tell({ kind: 'move' })
      await endProcess(db, processId).catch(report)
      const untilMs = performance.now() + stopWithinMs
      const isBusy = () => [...held.values()].some(({ link }) => link.underWay() > 0)
      while (isBusy() && performance.now() < untilMs) await sleep(50)
      for (const { link } of held.values()) link.end(closeCodes.move, 'this process of the API ends')
      await notices.stop()
    },
  }
}

/** Why a device that calls out cannot be asked. */
export function describeAbsence(id: string, row: DeviceConnection | null): string {
  if (row === null) return `${id} calls out, and has not connected yet`
  return `${id} calls out, and is not connected${row.endedAt === null ? '' : ` since ${row.endedAt}`}`
}

function every(ms: number, act: () => Promise<unknown>): NodeJS.Timeout {
  return setInterval(act, ms).unref()
}

/** Wakes those who wait for a change of a name, at once or when their time is over. */
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
