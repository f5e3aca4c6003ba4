import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { heartbeat } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import {
  heldSeconds,
  keepSlot,
  leaveSlot,
  lineBefore,
  type Slot,
  type SlotHolder,
  takeSlot,
} from '../db/models/slots.ts'
import { questionType } from '../domain/question.ts'
import type { RunRef } from '../domain/step-key.ts'
import { NonRetryable, RetryLater } from './failures.ts'

/** `limit`: how many requests may be at the model server at once, over all workers. */
export type Slots = { server: string; limit: number; keepEveryMs?: number }

const keepEveryMs = 10_000

/**
 * Milliseconds without a renewal of the slot after which the request is aborted, before another run
 * can get the slot.
 */
const maxSilentMs = (heldSeconds - 10) * 1000

const lookEveryMs = 500

/** Milliseconds after which a place in the queue is renewed, because it expires otherwise. */
const renewMs = 5_000

const holderName = ({ incidentId, attempt }: RunRef): string => `${incidentId}.${attempt}`

async function holderOf(db: Db, { server }: Slots, run: RunRef): Promise<SlotHolder> {
  const incident = await incidentById(db, run.incidentId)
  if (!incident) throw new NonRetryable('INCIDENT_NOT_FOUND')
  const { incidentId } = run
  const { severity, type } = incident
  return { server, holder: holderName(run), incidentId, severity, isQuestion: type === questionType }
}

/** Whether the worker stops, after which another attempt of the same step follows at once. */
const isHandedBack = (signal?: AbortSignal): boolean => signal?.reason?.message === 'WORKER_SHUTDOWN'

export type SlotTurn<T> = { taken: true; value: T } | { taken: false; ahead: number }

/**
 * Does the work with a slot, and releases the slot. If no slot is free, takes a place in the queue
 * and returns the number of runs before it. `lost` aborts the work if the slot is lost. If the
 * worker stops, the run keeps its slot. Otherwise its next attempt would wait behind all other
 * runs, within the time of its request.
 */
export async function withSlot<T>(
  db: Db,
  slots: Slots,
  run: RunRef,
  work: (waitedMs: number, lost: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<SlotTurn<T>> {
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
    if (kept === false || performance.now() - saidMs > maxSilentMs) lost.abort()
  }, slots.keepEveryMs ?? keepEveryMs)
  let isHanded = false
  try {
    return { taken: true, value: await work(slot.waitedMs, lost.signal) }
  } catch (error) {
    isHanded = isHandedBack(signal)
    if (lost.signal.aborted) throw new RetryLater('MODEL_SLOT_LOST')
    throw error
  } finally {
    clearInterval(timer)
    // Ignores a failed release, because the slot then expires.
    if (!isHanded) await leaveSlot(db, who.holder, token).catch(() => undefined)
  }
}

/**
 * Waits in the queue until a slot is kept for this run, or the time is over. At the end of the time
 * it returns the number of runs before this run, and keeps the run's place long enough for the run
 * to come back. A cancelled wait gives up its place, unless the worker stops.
 */
export async function waitForSlot(
  db: Db,
  slots: Slots,
  run: RunRef,
  forMs: number,
  signal: AbortSignal,
): Promise<Slot> {
  const who = await holderOf(db, slots, run)
  const until = performance.now() + forMs
  try {
    for (;;) {
      const slot = await takeSlot(db, who, slots.limit, null)
      if (slot.held || performance.now() > until) return slot
      await untilNext(db, slots, who, slot.ahead, signal)
    }
  } catch (error) {
    if (signal.aborted && !isHandedBack(signal)) await leaveSlot(db, who.holder, null).catch(() => undefined)
    throw error
  }
}

/** Gives up a run's place in the queue, and a slot that is kept for it. */
export async function leaveQueue(db: Db, run: RunRef): Promise<void> {
  await leaveSlot(db, holderName(run), null)
}

/**
 * Waits until the queue has moved up to this run, or the run's place must be renewed. The checks of
 * the queue take no lock, so that a long queue costs the database little. Runs at the front of the
 * queue check often, and later runs less often.
 */
async function untilNext(db: Db, slots: Slots, who: SlotHolder, ahead: number, signal: AbortSignal): Promise<void> {
  const renewAt = performance.now() + renewMs
  for (let before = ahead; before > 0; before = await lineBefore(db, who, slots.limit)) {
    heartbeat({ waitsFor: 'model', ahead: before })
    const leftMs = renewAt - performance.now()
    if (leftMs <= 0) return
    const lookMs = lookEveryMs * Math.ceil(before / slots.limit)
    await sleep(Math.min(lookMs, leftMs), undefined, { signal })
  }
}
