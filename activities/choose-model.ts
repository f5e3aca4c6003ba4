import type { ModelClient } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import { append } from '../db/log/append.ts'
import { restingModels, restModel } from '../db/models/profiles.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import type { TurnRef } from '../domain/step-key.ts'
import type { ServedModels } from './served-models.ts'

/** Chooses which of the declared models a run asks. */

/** A declared model, with its client. */
export type RoutedModel = {
  name: string
  model: string
  fallbacks: readonly string[]
  /** The declared protocol; if absent, the run's protocol applies. */
  protocol?: ModelProtocol
  client: ModelClient
  served: ServedModels
}

/**
 * Returns the protocol of a run that begins with this model. `auto` uses known facts of the model
 * server, and may read them from the server.
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

/** The declared models, the default first. */
export type ModelRoutes = readonly [RoutedModel, ...RoutedModel[]]

/** Seconds for which all runs with an alternative avoid a model that did not answer. */
export const restSeconds = 60

/** Seconds for which runs avoid a model with a payment problem, which needs a person. */
const unpaidSeconds = 900
const restOf = (failure: Failure | undefined) => (failure?.code === 'unpaid' ? unpaidSeconds : restSeconds)

/**
 * Weights of failures, by which a run leaves a model at `maxWeight`. Only unavailability counts:
 * two failed attempts, or one attempt that ran into a time limit of minutes. A refusal does not
 * count, because what one model refused may not be sent to another.
 */
const weightOf: Record<string, number> = { unavailable: 1, stalled: 1, timeout: 2, unpaid: 2 }
const maxWeight = 2

type Failure = { code: string; weight: number }

/** Adds up the failures of each model since the last answer of this attempt. */
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
 * Chooses the route's first model that has not failed and that no run avoids now; otherwise the
 * route's first model that has not failed. If all models failed, chooses the one that failed least.
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
 * Returns the model with which a run began and its replacements, in order. A name that is not
 * declared means the default. A run with native tools uses no model without tools.
 */
function routeOf(routes: ModelRoutes, { route: name, protocol }: Begun): [RoutedModel, ...RoutedModel[]] {
  const byName = (wanted: string | undefined) => routes.find((each) => each.name === wanted)
  const first = byName(name) ?? routes[0]
  const others = first.fallbacks.flatMap((each) => byName(each) ?? [])
  return [first, ...others.filter((each) => protocol === 'json' || each.protocol !== 'json')]
}

/** The model and protocol with which the run of the investigation began. */
type Begun = { route?: string; protocol: RunProtocol }

/**
 * Chooses the model for this attempt of a turn. A change gets a row with the reason, and all runs
 * then avoid the failed model for a while.
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
  unavailable: 'the model cannot be reached or does not work',
  stalled: 'the model stopped in the middle of its answers',
  timeout: 'it took too long',
  unpaid: 'the account of the model is out of credit',
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
  const why = reasons[failures.get(from)?.code ?? ''] ?? 'the model did not answer another run just before'
  const isBack = route.findIndex(({ name }) => name === to) < route.findIndex(({ name }) => name === from)
  const text =
    isBack && !failures.has(from) ? `Returned to ${shown(to)}` : `Fell back from ${shown(from)} to ${shown(to)}: ${why}`
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
