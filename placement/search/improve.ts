import { assignmentModel, assignmentOf } from '../bound/assignment.ts'
import { type Bound, lowerBound } from '../bound/bound.ts'
import type { Engine } from '../bound/engine.ts'
import { likelyMovers, masterOf } from '../bound/master.ts'
import type { Certificate } from '../certificate.ts'
import { isUp, noteCut, type Work } from '../cluster/clock.ts'
import { standAgainstRules } from '../cluster/flaws.ts'
import type { Instance } from '../cluster/instance.ts'
import { type Kinds, kindsOf } from '../cluster/kinds.ts'
import { isBetter, type Known, migrationsOf, nothingKnown } from '../cluster/known.ts'
import { roomOf } from '../cluster/room.ts'
import { exhaust, isSmall } from './exhaust.ts'
import { leastOf, oneByOne, startsAlone } from './leave-down.ts'
import { type Move, search } from './search.ts'
import { sequenceOf } from './sequence.ts'

type ImproveOptions = {
  deadlineMs: number
  random: () => number
  /** A sum has shown already that not all can have a place. */
  isImpossible?: boolean
  /** Asked where the first engine and the bound leave a gap. */
  closer?: Engine
  /** Told whenever something better is known. */
  report: (known: Known) => void
}

/** What the first search and each later one may do: a quarter of a second and six tenths, where nothing else runs. */
const firstWork = 10_000_000
const roundWork = 24_000_000
const smallStates = 150_000
const slackCosts = [30, 60]
/** Models with more columns than this only take the time that a search would use better. */
const columnsAtMost = 40_000
/** So many columns can be told impossible by an engine in a second or two. */
const columnsToProve = 3_000
/** So many are still a matter of seconds for an engine that cuts. */
const columnsToClose = 8_000
/** Prices of a certificate are whole. */
const scale = 1_000_000

/** Recovers and drains: the stages of docs/explanation/placement.md, cheapest first, until the best plan is proved or the time is up. */
export async function improve(instance: Instance, engine: Engine, options: ImproveOptions): Promise<Known> {
  const { deadlineMs, random, report } = options
  const { wanted } = instance
  const known = nothingKnown(instance)
  const forced = known.atLeast
  // In a state that breaks rules already, "no placement keeps them all" says nothing about the plan.
  const isSound = standAgainstRules(instance, roomOf(instance)).length === 0
  const leftMs = () => deadlineMs - performance.now()
  const isComplete = () => known.left.length === 0
  const migrations = () => migrationsOf(instance, known.moves)
  const isFinal = () => isComplete() && migrations() <= known.atLeast
  const isProved = () => known.isImpossible || isFinal()

  known.isImpossible = options.isImpossible ?? false

  // What can be settled by trying everything is searched once: so its plan does not hang on how fast this machine is.
  searchFor(firstWork, true, isSmall(instance) ? 1 : Number.POSITIVE_INFINITY)
  if (!isProved() && isSmall(instance)) tryAll()
  if (!isProved() && known.how !== 'exhausted') {
    await restartOnly()
    const kinds = kindsOf(instance)
    const bound = kinds && (!isProved() || known.how === 'engine') ? await boundBy(kinds) : null
    if (!isComplete()) found(...(await startsAlone(instance, engine, deadlineMs)))
    if (!isComplete()) await proveImpossible()
    // What it grew to for the bound is not needed for small models: the next question gets a new process.
    engine.stop()
    for (let round = 0; leftMs() > 300 && !isProved(); round += 1) {
      searchFor(roundWork, false)
      if (isProved() || leftMs() < 500) break
      if (round === 1 && options.closer) await closeGap(options.closer)
      else if (bound && kinds) await neighbourhood(kinds, bound, round)
    }
  }
  if (!isProved()) noteCut()
  if (known.isImpossible) await leaveDownLeast()
  return known

  function found(moves: Move[], left: number[] = []): void {
    if (!isBetter(instance, { moves, left }, known)) return
    Object.assign(known, { moves, left })
    report(known)
  }

  function proved(atLeast: number, how: Known['how'], certificate: Certificate | null = null): void {
    // A certificate says more than an engine's word.
    const isFirmer = atLeast === known.atLeast && known.how === 'engine' && how === 'certificate'
    if (atLeast <= known.atLeast && !isFirmer) return
    Object.assign(known, { atLeast, how, certificate })
    report(known)
  }

  function impossible(how: Known['how']): void {
    Object.assign(known, { isImpossible: true, how })
    report(known)
  }

  function searchFor(amount: number, isFirst: boolean, runs = Number.POSITIVE_INFINITY): void {
    const work: Work = { left: amount }
    for (let run = 0; run < runs && work.left > 0 && !isFinal() && !isUp(deadlineMs); run += 1) {
      const noise = isFirst && run === 0 ? 0 : 0.3 + 0.7 * random()
      const maxMigrations = isComplete() ? migrations() - forced - 1 : 60
      // While some stay down: of the small ones more may start.
      const first = !isComplete() && run % 3 === 2 ? 'smallest' : 'largest'
      const { moves, left } = search(instance, { random, noise, maxMigrations, deadlineMs, work, first })
      found(moves, left)
    }
  }

  function tryAll(): void {
    const tried = exhaust(instance, smallStates, Math.min(deadlineMs, performance.now() + 2_000))
    if (tried.kind === 'none') impossible('exhausted')
    if (tried.kind !== 'fewest') return
    found(tried.moves)
    proved(migrationsOf(instance, tried.moves), 'exhausted')
    known.how = 'exhausted'
  }

  /** Are restarts enough? A plan without migrations, or the engine's word that there is none. */
  async function restartOnly(): Promise<void> {
    if (forced > 0) return
    const built = assignmentModel(instance, [], 0)
    if (!built) return proved(1, 'engine')
    if (built.columns.length > columnsAtMost) return
    const answer = await engine.solve(built.model, Math.min(1_500, leftMs() * 0.3))
    if (answer.status === 'infeasible' && isSound) return proved(1, 'engine')
    if (answer.status !== 'optimal' && answer.status !== 'feasible') return
    const moves = sequenceOf(instance, assignmentOf(built, answer.values), deadlineMs)
    if (moves) found(moves)
  }

  async function boundBy(kinds: Kinds): Promise<Bound | null> {
    const upTo = isComplete() ? migrations() - forced : 8
    let best: Bound | null = null
    for (const slackCost of slackCosts) {
      const until = performance.now() + Math.min(3_000, leftMs() * 0.4)
      const bound = await lowerBound(kinds, masterOf(kinds, engine, slackCost, until), upTo, until)
      if (bound.proof) proved(forced + bound.atLeast, 'certificate', certificateOf(kinds, bound.proof))
      if (!best || bound.atLeast > best.atLeast) best = bound
      if (isProved() || bound.atLeast >= upTo || isUp(deadlineMs - 4_000)) break
    }
    return best
  }

  /** Not even the end places exist, whatever is moved: an engine's word, and only asked where it can tell. */
  async function proveImpossible(): Promise<void> {
    const movers = instance.movable.flatMap((may, vm) => (may ? [vm] : []))
    if (!isSound || (movers.length + wanted.length) * instance.targets > columnsToProve) return
    const built = assignmentModel(instance, movers, movers.length)
    if (!built) return impossible('engine')
    const answer = await engine.solve(built.model, Math.min(2_000, leftMs() * 0.5))
    if (answer.status === 'infeasible') return impossible('engine')
    if (answer.status !== 'optimal' && answer.status !== 'feasible') return
    const moves = sequenceOf(instance, assignmentOf(built, answer.values), deadlineMs)
    if (moves) found(moves)
  }

  /** VMs whose like leave their host in the bound's patterns may move; one migration fewer than is known. */
  async function neighbourhood(kinds: Kinds, bound: Bound, round: number): Promise<void> {
    const movers = likelyMovers(instance, kinds, bound, [20, 60, 150][round % 3] as number)
    const most = isComplete() ? migrations() - forced - 1 : 12
    const built = assignmentModel(instance, movers, most)
    if (!built || built.columns.length > columnsAtMost) return
    const answer = await engine.solve(built.model, Math.min(1_500, leftMs() - 300))
    const isAll = movers.length === instance.movable.filter(Boolean).length
    if (answer.status === 'infeasible' && isAll && isSound && isComplete()) proved(migrations(), 'engine')
    if (answer.status !== 'optimal' && answer.status !== 'feasible') return
    const moves = sequenceOf(instance, assignmentOf(built, answer.values), deadlineMs)
    if (moves) found(moves)
  }

  /** Where the whole model is small enough for it, a second engine tells whether one migration fewer does, or any number. Its word. */
  async function closeGap(closer: Engine): Promise<void> {
    const movers = instance.movable.flatMap((may, vm) => (may ? [vm] : []))
    if (!isSound || (movers.length + wanted.length) * instance.targets > columnsToClose) return
    const built = assignmentModel(instance, movers, isComplete() ? migrations() - forced - 1 : movers.length)
    if (!built) return
    engine.stop()
    const answer = await closer.solve(built.model, Math.min(4_500, leftMs() - 500))
    closer.stop()
    if (answer.status === 'infeasible') return isComplete() ? proved(migrations(), 'engine') : impossible('engine')
    if (answer.status !== 'optimal' && answer.status !== 'feasible') return
    const moves = sequenceOf(instance, assignmentOf(built, answer.values), deadlineMs)
    if (moves) found(moves)
  }

  /** Not all can have a place: whom to leave down. Never worse than what starts while nothing moves. */
  async function leaveDownLeast(): Promise<void> {
    if (isSmall(instance) && wanted.length <= 10) {
      const least = leastOf(instance, known.left, smallStates, deadlineMs)
      if (least.best) found(least.best.moves, least.best.left)
      if (least.isExact) return
    }
    found(...(await startsAlone(instance, engine, deadlineMs)))
    searchFor(roundWork, false)
    const { moves, left } = oneByOne(instance, random, deadlineMs)
    found(moves, left)
  }
}

function certificateOf({ kinds }: Kinds, { k, price }: NonNullable<Bound['proof']>): Certificate {
  const whole = kinds.flatMap(({ key }, kind): [string, number][] => {
    const value = Math.floor((price[kind] as number) * scale)
    return value > 0 ? [[key, value]] : []
  })
  return { k, scale, price: Object.fromEntries(whole) }
}
