import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { heartbeat } from '@temporalio/activity'
import { readServedModel } from '../clients/chat/window.ts'
import { baseUrlOf, type ModelClient, type ShapeMemory, serverName } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { append } from '../db/log/append.ts'
import {
  claimReading,
  keepAbilities,
  keepRefusedWindow,
  keepServed,
  keepShape,
  leaveAlone,
  type ModelProfile,
  modelProfile,
  modelsAway,
} from '../db/models/profiles.ts'
import { heldSeconds, keepSlot, leaveSlot, type Slot, type SlotHolder, takeSlot } from '../db/models/slots.ts'
import { plainShape } from '../domain/chat.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import type { Run, Turn } from '../domain/step-key.ts'
import { NonRetryable, RetryLater } from './activity.ts'

/** The server of a model, and which of the declared models a run asks. */

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

/** A declared model, with what asks it. */
export type RoutedModel = {
  name: string
  model: string
  fallbacks: readonly string[]
  /** As it is declared; without it that of the run. */
  protocol?: ModelProtocol
  client: ModelClient
  served: ServedModels
}

/** The protocol of a run that begins with this model. `auto` asks what is known of its server, which may ask the server. */
export async function protocolOf(
  { protocol, model, served }: Pick<RoutedModel, 'protocol' | 'model' | 'served'>,
  usual: RunProtocol,
): Promise<RunProtocol> {
  if (protocol !== 'auto') return protocol ?? usual
  const { abilities } = await served.profile(model)
  return abilities.tools === 'no' ? 'json' : 'native'
}

type RunProtocol = 'native' | 'json'
type ModelProtocol = RunProtocol | 'auto'

/** The first is the default. */
export type ModelRoutes = readonly [RoutedModel, ...RoutedModel[]]

/** A model that did not answer is left alone for so long by all runs that have another one. */
export const restSeconds = 60

/**
 * What a failure counts towards leaving a model: only of those that say it cannot be had. Two tries, of a time limit one: it has taken
 * minutes already. A refusal counts nothing, for another model must not be asked what one has refused.
 */
const weightOf: Record<string, number> = { unavailable: 1, stalled: 1, timeout: 2 }
const mostWeight = 2

type Failure = { code: string; weight: number }

/** Since the last answer of this attempt, by the name of the model. */
export function failuresOf(events: readonly IncidentEvent[], attempt: number): Map<string, Failure> {
  const own = events.filter((event) => event.attempt === attempt)
  const from = own.findLastIndex(({ kind }) => kind === 'model_answered')
  const failures = new Map<string, Failure>()
  for (const event of own.slice(from + 1)) {
    if (event.kind !== 'model_failed' || event.metadata.route === undefined) continue
    const { route, code } = event.metadata
    failures.set(route, { code, weight: (failures.get(route)?.weight ?? 0) + (weightOf[code] ?? 0) })
  }
  return failures
}

/**
 * The model to ask: the first of the route that has not failed and is not left alone, else the first that has not failed. When all
 * have, the one that failed least: the route begins again.
 */
export function chooseModel<T extends { name: string }>(
  route: readonly [T, ...T[]],
  failures: ReadonlyMap<string, Failure>,
  isAway: (model: T) => boolean,
): T {
  const weight = ({ name }: T) => failures.get(name)?.weight ?? 0
  const fresh = route.filter((each) => weight(each) < mostWeight)
  const least = Math.min(...route.map(weight))
  return fresh.find((each) => !isAway(each)) ?? fresh[0] ?? route.find((each) => weight(each) === least) ?? route[0]
}

/**
 * The model of a context and those that stand in for it, in order. A name that is declared no more is the default. A run that was given tools
 * goes to no model that takes none.
 */
export function routeOf(routes: ModelRoutes, { route: name, protocol }: Begun): [RoutedModel, ...RoutedModel[]] {
  const byName = (wanted: string | undefined) => routes.find((each) => each.name === wanted)
  const first = byName(name) ?? routes[0]
  const others = first.fallbacks.flatMap((each) => byName(each) ?? [])
  return [first, ...others.filter((each) => protocol === 'json' || each.protocol !== 'json')]
}

/** How the run began: with which model, by which protocol. */
type Begun = { route?: string; protocol: RunProtocol }

/**
 * The model that this try asks. When it is another one than the try before asked, a row says so and why, and who did not answer is
 * left alone for a minute by every run.
 */
export async function modelFor(
  db: Db,
  routes: ModelRoutes,
  turn: Turn,
  events: readonly IncidentEvent[],
  begun: Begun,
): Promise<RoutedModel> {
  const route = routeOf(routes, begun)
  if (route.length === 1) return route[0]
  const failures = failuresOf(events, turn.attempt)
  const away = await modelsAway(db)
  const isAway = ({ served, model }: RoutedModel) =>
    away.some((each) => each.server === served.server && each.model === model)
  const chosen = chooseModel(route, failures, isAway)
  const current = currentOf(events, turn.attempt) ?? route[0].name
  if (chosen.name === current) return chosen
  const left = route.find(({ name }) => name === current)
  if (left && (failures.get(current)?.weight ?? 0) >= mostWeight)
    await leaveAlone(db, { server: left.served.server, model: left.model }, restSeconds)
  await say(db, turn, { from: current, to: chosen.name }, { route, failures })
  return chosen
}

function currentOf(events: readonly IncidentEvent[], attempt: number): string | null {
  const last = events.findLast(
    (event) => event.kind === 'noted' && event.metadata.code === 'model_route' && event.attempt === attempt,
  )
  return last?.kind === 'noted' ? (last.metadata.route?.to ?? null) : null
}

const reasons: Record<string, string> = {
  unavailable: 'it cannot be reached or does not work',
  stalled: 'it stopped in the middle of its answers',
  timeout: 'it took too long',
}

async function say(
  db: Db,
  { incidentId, attempt, turn }: Turn,
  { from, to }: { from: string; to: string },
  { route, failures }: { route: readonly RoutedModel[]; failures: ReadonlyMap<string, Failure> },
): Promise<void> {
  const shown = (name: string) => {
    const found = route.find((each) => each.name === name)
    return found ? `${name} (${found.model})` : name
  }
  const why = reasons[failures.get(from)?.code ?? ''] ?? 'it did not answer another run a moment ago'
  const isBack = route.findIndex(({ name }) => name === to) < route.findIndex(({ name }) => name === from)
  const text =
    isBack && !failures.has(from) ? `Back at ${shown(to)}` : `Fell back from ${shown(from)} to ${shown(to)}: ${why}`
  await db.transaction().execute(async (trx) => {
    await append(trx, incidentId, attempt, {
      kind: 'noted',
      actor: agentActor,
      turn,
      detail: text,
      metadata: { code: 'model_route', text, route: { from, to } },
    })
  })
}
