import { randomUUID } from 'node:crypto'
import { HttpError, type HttpErrorCode } from '../../clients/http.ts'
import type { Db } from '../../db/connect.ts'
import type { DeviceConnection } from '../../db/inventory/device-connections.ts'
import {
  answerRelay,
  askRelay,
  dropRelay,
  type Relay,
  type RelayPiece,
  takePieces,
  takeRelays,
  withdrawRelay,
} from '../../db/inventory/relays.ts'
import { type AnswerReceiver, type BegunAnswer, type DeviceAsk, receiver } from '../../mesh/exchange.ts'
import { packFrame, readFrame } from '../../mesh/frames.ts'
import type { Seal } from '../../mesh/seal.ts'

/**
 * Milliseconds in which the other process must take a request; after this time the request is
 * withdrawn.
 */
const takenWithinMs = 5_000
/** Seconds after which rows of a process that has ended are deleted. */
const keptSeconds = 60
const maxRowBytes = 1_000_000

type RelayWorld = {
  db: Db
  seal: Seal
  processId: string
  /**
   * Begins an exchange over a connection of this process; null if this process has no connection of
   * that device.
   */
  begin(deviceId: string, ask: DeviceAsk): Promise<BegunAnswer> | null
  report(error: unknown): void
}

type Relays = {
  /** Makes an exchange through the process that holds this connection. */
  ask(at: DeviceConnection & { processId: string }, ask: DeviceAsk): Promise<BegunAnswer>
  /**
   * Ends the exchanges over any earlier connection of this device, because no answer can come over
   * that connection any more.
   */
  onConnection(deviceId: string, connection: string | null): void
  /** Handles a notification of another process. An empty notification means: check everything. */
  onNotice(text: string): void
  /** Lists the devices to which exchanges through other processes are under way. */
  asked(): string[]
}

type Asked = { deviceId: string; connection: string; one: AnswerReceiver; isTaken: boolean }
type SentAsk = Omit<DeviceAsk, 'signal'>

/**
 * Passes exchanges between processes of the API by rows of the database, with a notification for
 * each.
 */
export function openRelays(world: RelayWorld): Relays {
  const { db, processId, report } = world
  const asked = new Map<string, Asked>()
  const passing = new Map<string, AbortController>()
  const serial = oneAfterTheOther(report)

  function fail(id: string, error: HttpError): void {
    asked.get(id)?.one.fail(error)
    asked.delete(id)
  }

  async function ask(at: DeviceConnection & { processId: string }, one: DeviceAsk): Promise<BegunAnswer> {
    const id = randomUUID()
    const relay = { id, deviceId: at.deviceId, toProcess: at.processId, fromProcess: processId }
    const own = receiver(at.deviceId, one, () => {
      asked.delete(id)
      void dropRelay(db, relay).catch(report)
      void withdrawRelay(db, id).catch(report)
    })
    const { signal: _, ...sent } = one
    const sealed = world.seal.close(Buffer.from(JSON.stringify(sent), 'utf8'), `ask ${id}`)
    asked.set(id, { deviceId: at.deviceId, connection: at.connection, one: own, isTaken: false })
    try {
      await askRelay(db, { ...relay, sealed }, Math.ceil(takenWithinMs / 1_000))
    } catch (error) {
      report(error)
      // Fails the exchange, although the row may have been written. A process that takes the row
      // later finds no waiting request, and the device's journal has the call.
      fail(id, new HttpError('protocol', `${at.deviceId} could not be reached through ${at.process}`, true))
    }
    const timer = setTimeout(() => void takeBack(id, at).catch(report), takenWithinMs)
    return await own.answer.finally(() => clearTimeout(timer))
  }

  /** Withdraws a request that no other process took, so that certainly nothing was sent. */
  async function takeBack(id: string, { deviceId, process }: DeviceConnection): Promise<void> {
    if (!asked.has(id) || asked.get(id)?.isTaken) return
    if (await withdrawRelay(db, id))
      fail(
        id,
        new HttpError('connect', `${deviceId}: ${process} has its connection, but does not forward requests`, true),
      )
  }

  async function takeAll(): Promise<void> {
    for (const relay of await takeRelays(db, processId)) void pass(world, passing, relay).catch(report)
  }

  async function readAll(): Promise<void> {
    for (let pieces = await takePieces(db, processId); pieces.length > 0; pieces = await takePieces(db, processId)) {
      for (const piece of pieces.sort((a, b) => a.n - b.n)) takePiece(asked, world.seal, piece)
    }
  }

  return {
    ask,
    onConnection(deviceId, connection) {
      for (const [id, each] of asked) {
        if (each.deviceId !== deviceId || each.connection === connection) continue
        fail(id, new HttpError('protocol', `the connection of ${deviceId} ended before its response came`, true))
      }
    },
    onNotice(text) {
      if (text.startsWith('drop ')) passing.get(text.slice('drop '.length))?.abort()
      if (text !== 'pieces' && !text.startsWith('drop ')) serial('take', takeAll)
      if (text !== 'ask' && !text.startsWith('drop ')) serial('read', readAll)
    },
    asked: () => [...new Set([...asked.values()].map(({ deviceId }) => deviceId))],
  }
}

/** Gives one piece of an answer to the waiting request; the last piece ends the exchange. */
function takePiece(asked: Map<string, Asked>, seal: Seal, { relayId, n, sealed }: RelayPiece): void {
  const found = asked.get(relayId)
  const plain = found && seal.open(sealed, `answer ${relayId} ${n}`)
  const frame = plain ? readFrame(plain) : null
  if (!found) return
  found.isTaken = true
  const { one } = found
  if (frame?.kind === 'head') one.head(frame.piece.readUInt16BE(0))
  else if (frame?.kind === 'data') one.data(frame.piece)
  else {
    asked.delete(relayId)
    if (frame?.kind === 'end') one.end()
    else one.fail(frame ? readError(frame.piece) : new HttpError('protocol', 'a relayed response was altered', false))
  }
}

/**
 * Makes an exchange that another process requested, and writes each piece of the answer for that
 * process as it comes.
 */
async function pass(world: RelayWorld, passing: Map<string, AbortController>, relay: Relay): Promise<void> {
  const { id, deviceId } = relay
  const stop = new AbortController()
  passing.set(id, stop)
  const write = rowsFor(world, relay)
  try {
    const sent = world.seal.open(relay.sealed, `ask ${id}`)
    if (!sent) throw new HttpError('connect', 'the request to pass on is not from this control plane', false)
    const begun = world.begin(deviceId, { ...(JSON.parse(sent.toString('utf8')) as SentAsk), signal: stop.signal })
    if (!begun) throw new HttpError('connect', `${deviceId} has just connected to another process`, true)
    const { status, pieces } = await begun
    const head = Buffer.alloc(2)
    head.writeUInt16BE(status, 0)
    write.add(packFrame('head', 0, head))
    for await (const piece of pieces) write.add(packFrame('data', 0, piece))
    write.add(packFrame('end', 0))
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    write.add(packFrame('drop', 0, Buffer.from(writeError(error), 'utf8')))
  } finally {
    passing.delete(id)
    await write.done()
  }
}

/**
 * Writes frames as rows in order. Frames that come while a row is written go together into the next
 * row.
 */
function rowsFor({ db, seal }: RelayWorld, { id, fromProcess }: Relay) {
  let n = 0
  let waiting: Buffer[] = []
  let writing: Promise<void> | null = null
  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const frames = joinData(waiting)
      waiting = []
      for (const frame of frames) {
        const sealed = seal.close(frame, `answer ${id} ${n}`)
        await answerRelay(db, { relayId: id, n, sealed }, fromProcess, keptSeconds)
        n += 1
      }
    }
    writing = null
  }
  return {
    add(frame: Buffer) {
      waiting.push(frame)
      writing ??= writeAll()
      // Ignores the error here, because `done` reports the error.
      writing.catch(() => {})
    },
    async done() {
      await writing
    },
  }
}

/** Joins adjacent frames of data into one, up to the size of a row. */
function joinData(frames: readonly Buffer[]): Buffer[] {
  const joined: Buffer[][] = []
  let bytes = 0
  for (const frame of frames) {
    const parsed = readFrame(frame)
    const before = joined.at(-1)
    if (parsed?.kind === 'data' && before && bytes > 0 && bytes + parsed.piece.length <= maxRowBytes) {
      before.push(parsed.piece)
      bytes += parsed.piece.length
    } else {
      joined.push([frame])
      bytes = parsed?.kind === 'data' ? parsed.piece.length : 0
    }
  }
  return joined.map((each) => (each.length === 1 ? (each[0] as Buffer) : Buffer.concat(each)))
}

function writeError({ code, message, retryable }: HttpError): string {
  return JSON.stringify({ code, message, retryable })
}

function readError(piece: Buffer): HttpError {
  const { code, message, retryable } = JSON.parse(piece.toString('utf8')) as {
    code: HttpErrorCode
    message: string
    retryable: boolean
  }
  return new HttpError(code, message, retryable)
}

/** Runs each kind of work at most once at a time. Requests during a run cause one more run. */
function oneAfterTheOther(report: (error: unknown) => void): (kind: string, work: () => Promise<void>) => void {
  const running = new Map<string, { again: boolean }>()
  return function run(kind, work) {
    const now = running.get(kind)
    if (now) {
      now.again = true
      return
    }
    const state = { again: false }
    running.set(kind, state)
    void work()
      .catch(report)
      .finally(() => {
        running.delete(kind)
        if (state.again) run(kind, work)
      })
  }
}
