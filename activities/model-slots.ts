import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { heartbeat } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { heldSeconds, keepSlot, leaveSlot, type Slot, type SlotHolder, takeSlot } from '../db/models/slots.ts'
import { questionType } from '../domain/question.ts'
import type { RunRef } from '../domain/step-key.ts'
import { NonRetryable, RetryLater } from './failures.ts'

/** How many ask the model at once, over all workers. */
export type Slots = { server: string; limit: number; keepEveryMs?: number }

const keepEveryMs = 10_000

/** The call is given up before anybody else may have its slot. */
const maxSilentMs = (heldSeconds - 10) * 1000

const lookEveryMs = 500

const maxLookMs = 3_000

async function holderOf(db: Db, { server }: Slots, run: RunRef): Promise<SlotHolder> {
  const incident = await incidentById(db, run.incidentId)
  if (!incident) throw new NonRetryable('INCIDENT_NOT_FOUND')
  const { incidentId, attempt } = run
  const { severity, type } = incident
  return { server, holder: `${incidentId}.${attempt}`, incidentId, severity, isQuestion: type === questionType }
}

export type SlotTurn<T> = { taken: true; value: T } | { taken: false; ahead: number }

/**
 * Does the work with a slot, and lets go of it. Without a free one: a place in the line, and the
 * answer how many go first. The work's signal ends it when the slot is lost.
 */
export async function withSlot<T>(
  db: Db,
  slots: Slots,
  run: RunRef,
  work: (waitedMs: number, lost: AbortSignal) => Promise<T>,
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
 * Waits in the line until a slot is kept for this run, or the time is over: then it answers how
 * many go first, and keeps the place as long as coming back takes. A cancelled wait leaves the
 * line.
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
      heartbeat({ waitsFor: 'model', ahead: slot.ahead })
      // The next in the line looks often, those behind it less.
      await sleep(Math.min(maxLookMs, lookEveryMs * slot.ahead), undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted) await leaveSlot(db, who.holder, null).catch(() => undefined)
    throw error
  }
}
