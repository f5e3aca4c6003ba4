import type { ModelClient } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import { append } from '../db/log/append.ts'
import { restingModels, restModel } from '../db/models/profiles.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import type { TurnRef } from '../domain/step-key.ts'
import type { ServedModels } from './served-models.ts'

/** Chooses which of the declared models a run asks. */

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

/**
 * The protocol of a run that begins with this model. `auto` goes by what is known of its server,
 * which it may ask.
 */
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

/** Money takes a person. */
const unpaidSeconds = 900
const restOf = (failure: Failure | undefined) => (failure?.code === 'unpaid' ? unpaidSeconds : restSeconds)

/**
 * The weight of a failure towards leaving a model: only of those that call it unavailable. Two
 * tries; one after a time limit, which took minutes. A refusal counts nothing, since another model
 * must not be asked what one refused.
 */
const weightOf: Record<string, number> = { unavailable: 1, stalled: 1, timeout: 2, unpaid: 2 }
const maxWeight = 2

type Failure = { code: string; weight: number }

/** Since the last answer of this attempt, by the name of the model. */
function failuresOf(events: readonly IncidentEvent[], attempt: number): Map<string, Failure> {
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
 * The model to ask: the route's first that neither failed nor is left alone, else the first that
 * did not fail. When all failed, the one that failed least: the route begins again.
 */
export function chooseModel<T extends { name: string }>(
  route: readonly [T, ...T[]],
  failures: ReadonlyMap<string, Failure>,
  isAway: (model: T) => boolean,
): T {
  const weight = ({ name }: T) => failures.get(name)?.weight ?? 0
  const fresh = route.filter((each) => weight(each) < maxWeight)
  const min = Math.min(...route.map(weight))
  return fresh.find((each) => !isAway(each)) ?? fresh[0] ?? route.find((each) => weight(each) === min) ?? route[0]
}

/**
 * A context's model and its stand-ins, in order. A name no longer declared is the default. A run
 * with tools goes to no model that takes none.
 */
function routeOf(routes: ModelRoutes, { route: name, protocol }: Begun): [RoutedModel, ...RoutedModel[]] {
  const byName = (wanted: string | undefined) => routes.find((each) => each.name === wanted)
  const first = byName(name) ?? routes[0]
  const others = first.fallbacks.flatMap((each) => byName(each) ?? [])
  return [first, ...others.filter((each) => protocol === 'json' || each.protocol !== 'json')]
}

/** How the run began: with which model, by which protocol. */
type Begun = { route?: string; protocol: RunProtocol }

/**
 * The model of this try. Another model than the try before's gets a row with the reason, and the
 * silent one is left alone for a minute by every run.
 */
export async function modelFor(
  db: Db,
  routes: ModelRoutes,
  turn: TurnRef,
  events: readonly IncidentEvent[],
  begun: Begun,
): Promise<RoutedModel> {
  const route = routeOf(routes, begun)
  if (route.length === 1) return route[0]
  const failures = failuresOf(events, turn.attempt)
  const away = await restingModels(db)
  const isAway = ({ served, model }: RoutedModel) =>
    away.some((each) => each.server === served.server && each.model === model)
  const chosen = chooseModel(route, failures, isAway)
  const current = currentOf(events, turn.attempt) ?? route[0].name
  if (chosen.name === current) return chosen
  const left = route.find(({ name }) => name === current)
  if (left && (failures.get(current)?.weight ?? 0) >= maxWeight)
    await restModel(db, { server: left.served.server, model: left.model }, restOf(failures.get(current)))
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
  unpaid: 'its account is out of credit',
}

async function say(
  db: Db,
  { incidentId, attempt, turn }: TurnRef,
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
