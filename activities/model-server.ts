import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { heartbeat } from '@temporalio/activity'
import { readServedModel } from '../clients/chat/window.ts'
import { baseUrlOf, type ShapeMemory, serverName } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents.ts'
import {
  claimReading,
  heldSeconds,
  keepAbilities,
  keepRefusedWindow,
  keepServed,
  keepShape,
  keepSlot,
  leaveSlot,
  type ModelProfile,
  modelProfile,
  type Slot,
  type SlotHolder,
  takeSlot,
} from '../db/model-servers.ts'
import { plainShape } from '../domain/chat.ts'
import type { Run } from '../domain/step-key.ts'
import { NonRetryable, RetryLater } from './failure.ts'

/** The server of a model, with what all workers know of it. */
export type ServedModels = {
  /** Its address without credentials, by which rows name it. */
  server: string
  /** What is known now; asks the server where that is due. */
  profile(model: string): Promise<ModelProfile>
  noteRefusedWindow(model: string, tokens: number): Promise<void>
  memory: ShapeMemory
}

type Log = { warn(fields: object, message: string): void }

/** Keeps in rows what is learned of the model's server, so that one worker's refused request teaches all. */
export function servedModels(db: Db, given: { baseUrl: string; apiKey: string }, log: Log): ServedModels {
  const baseUrl = baseUrlOf(given.baseUrl)
  const server = serverName(baseUrl)
  const noted = new Set<string>()
  return {
    server,
    async profile(model) {
      const key = { server, model }
      const known = await modelProfile(db, key)
      if (!known.isDue) return known
      // One asks for all; only what nobody has ever read is worth a second question.
      if (!(await claimReading(db, key)) && known.isRead) return known
      const served = await readServedModel({ baseUrl, apiKey: given.apiKey, model })
      if (served === null) return known
      await keepServed(db, key, served)
      return await modelProfile(db, key)
    },
    noteRefusedWindow: (model, tokens) => keepRefusedWindow(db, { server, model }, tokens),
    memory: {
      async recall(model) {
        try {
          return (await modelProfile(db, { server, model })).shape
        } catch (error) {
          log.warn({ err: error }, 'what is known of the model server could not be read')
          return plainShape
        }
      },
      async keep(model, shape) {
        try {
          await keepShape(db, { server, model }, shape)
          log.warn(
            { server, model, shape },
            'the model server wants its requests otherwise, and gets them so from now on',
          )
        } catch (error) {
          log.warn({ err: error }, 'what was learned of the model server could not be kept')
        }
      },
      async note(model, seen) {
        // Each is written once by each worker: every answer shows the same.
        const fresh = Object.entries(seen).filter((each) => !noted.has(`${model} ${each.join()}`))
        if (fresh.length === 0) return
        try {
          await keepAbilities(db, { server, model }, Object.fromEntries(fresh))
          for (const each of fresh) noted.add(`${model} ${each.join()}`)
        } catch (error) {
          log.warn({ err: error }, 'what an answer showed of the model server could not be kept')
        }
      },
    },
  }
}

/** How many ask the model at once, over all workers. */
export type Slots = { server: string; limit: number; keepEveryMs?: number }

const keepEveryMs = 10_000
/** The call is given up before anybody else may have its slot. */
const mostSilentMs = (heldSeconds - 10) * 1000
const lookEveryMs = 500
const longestLookMs = 3_000

async function holderOf(db: Db, { server }: Slots, run: Run): Promise<SlotHolder> {
  const incident = await incidentById(db, run.incidentId)
  if (!incident) throw new NonRetryable('INCIDENT_NOT_FOUND')
  const { incidentId, attempt } = run
  return { server, holder: `${incidentId}.${attempt}`, incidentId, severity: incident.severity }
}

export type Turned<T> = { taken: true; value: T } | { taken: false; ahead: number }

/**
 * Does the work with a slot, and lets go of it. Without a free one: a place in the line, and the answer how many go first. The
 * signal that the work gets ends it when the slot is lost.
 */
export async function withSlot<T>(
  db: Db,
  slots: Slots,
  run: Run,
  work: (waitedMs: number, lost: AbortSignal) => Promise<T>,
): Promise<Turned<T>> {
  const who = await holderOf(db, slots, run)
  const token = randomUUID()
  const slot = await takeSlot(db, who, slots.limit, token)
  if (!slot.held) return { taken: false, ahead: slot.ahead }
  const lost = new AbortController()
  let saidMs = performance.now()
  const timer = setInterval(async () => {
    const beganMs = performance.now()
    const kept = await keepSlot(db, who.holder, token).catch(() => null)
    if (kept === true) saidMs = beganMs
    if (kept === false || performance.now() - saidMs > mostSilentMs) lost.abort()
  }, slots.keepEveryMs ?? keepEveryMs)
  try {
    return { taken: true, value: await work(slot.waitedMs, lost.signal) }
  } catch (error) {
    if (lost.signal.aborted) throw new RetryLater('MODEL_SLOT_LOST')
    throw error
  } finally {
    clearInterval(timer)
    // One that cannot be given back ends by itself.
    await leaveSlot(db, who.holder, token).catch(() => undefined)
  }
}

/**
 * Waits in the line until a slot is kept for this run, or until the time is over: then the answer says how many go first, and the
 * place in the line stays for as long as it takes to come back. A cancelled wait leaves the line.
 */
export async function waitForSlot(db: Db, slots: Slots, run: Run, forMs: number, signal: AbortSignal): Promise<Slot> {
  const who = await holderOf(db, slots, run)
  const until = performance.now() + forMs
  try {
    for (;;) {
      const slot = await takeSlot(db, who, slots.limit, null)
      if (slot.held || performance.now() > until) return slot
      heartbeat({ waitsFor: 'model', ahead: slot.ahead })
      // The next in the line looks often, those behind it less.
      await sleep(Math.min(longestLookMs, lookEveryMs * slot.ahead), undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted) await leaveSlot(db, who.holder, null).catch(() => undefined)
    throw error
  }
}
