import { type Case, readCases, type Which } from './grounding/cases.ts'
import { type Diagnosed, kinds, scriptOf, type Trial, trials, trialsOf } from './grounding/lies.ts'
import { type Outcome, type Player, startPlayer } from './grounding/play.ts'
import { report } from './stage.ts'

/**
 * Recorded public investigations through the real loop, judge and ledger: what a diagnosis claims is accepted where the readings show it, and
 * refused where the reading that decides was not read, or where the readings are of another case.
 */

type Played = { trial: Trial; own: Case; otherId: string; outcome: Outcome }
type Options = { dir?: string | undefined; json: boolean; cases: number; which: Which }

const atOnce = 4
const progressEvery = 200

export async function grounding(options: Options): Promise<void> {
  const { dir, which } = options
  if (!dir)
    return void console.log('grounding: give --dir with a copy of Cloud-OpsBench, which everybody fetches alone')
  if (!(options.cases >= 1)) return void console.log('grounding: --cases is a number of recorded ways, 1 or more')
  const startedAt = Date.now()
  const all = takeEvenly(readCases(dir, which), options.cases)
  const known = all.filter((each): each is Diagnosed => each.diagnosis !== null)
  const player = await startPlayer()
  const played = await playAll(player, known)
  await player.stop()
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  if (options.json)
    console.log(JSON.stringify({ bench: 'grounding', which, seconds, ...summary(all, played), played: lines(played) }))
  else print(all, played, seconds)
}

function takeEvenly(all: readonly Case[], most: number): Case[] {
  const every = Math.max(1, all.length / most)
  return all.filter((_, at) => Math.floor(at / every) !== Math.floor((at - 1) / every))
}

async function playAll(player: Player, known: readonly Diagnosed[]): Promise<Played[]> {
  const work = known.flatMap((own, at) =>
    kinds.map((kind) => ({ chosen: trialsOf(kind), own, other: otherOf(known, at) })),
  )
  const left = work.entries()
  const played: Played[] = []
  const lane = async () => {
    for (const [at, { chosen, own, other }] of left) {
      if (other) played.push(...(await playTrials(player, chosen, own, other)))
      if ((at + 1) % progressEvery === 0) console.error(`${at + 1} of ${work.length} runs`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return played
}

/** One run tries one after another; what is behind one that was recorded is tried in a run more. */
async function playTrials(player: Player, chosen: Trial[], own: Diagnosed, other: Diagnosed): Promise<Played[]> {
  const played: Played[] = []
  while (played.length < chosen.length) {
    const left = chosen.slice(played.length)
    const script = scriptOf(left, own, other)
    if (!script) return played
    const outcomes = await player.play(script)
    if (outcomes.length === 0) throw new Error(`${own.id}: no ending was judged`)
    for (const [at, outcome] of outcomes.entries()) {
      const trial = left[at]
      if (trial) played.push({ trial, own, otherId: other.id, outcome })
    }
  }
  return played
}

/** A case with another fault and another object, far away in the list. */
function otherOf(known: readonly Diagnosed[], at: number): Diagnosed | undefined {
  const own = known[at]
  const step = Math.floor(known.length / 3) + at
  const turned = known.map((_, index) => known[(at + step + index) % known.length] as Diagnosed)
  return turned.find(({ fault, object }) => fault !== own?.fault && object !== own?.object)
}

const isGolden = ({ trial }: Played) => trial === 'golden'
const isAccepted = ({ outcome }: Played) => outcome.ending === 'answered'

function lines(played: readonly Played[]): Record<string, unknown>[] {
  return played
    .filter((each) => isGolden(each) !== isAccepted(each))
    .map(({ trial, own, otherId, outcome }) => ({
      trial,
      case: own.id,
      fault: own.fault,
      other: trial.startsWith('swapped') ? otherId : null,

      claim: own.diagnosis?.claim ?? '',
      ending: outcome.ending,
      why: outcome.why,
    }))
}

function summary(all: readonly Case[], played: readonly Played[]) {
  const golden = played.filter(isGolden)
  const mutated = played.filter((each) => !isGolden(each))
  const accepted = golden.filter(isAccepted).length
  const false_ = mutated.filter(isAccepted).length
  const percent = (part: number, whole: number) => `${((part / Math.max(1, whole)) * 100).toFixed(2)} %`
  return {
    cases: new Set(all.map(({ id }) => id.replace(/\/[^/]+$/, ''))).size,
    'ways to a diagnosis': all.length,
    'ways whose readings hold no cause': all.length - golden.length,
    'golden accepted': `${accepted} of ${all.length}, ${percent(accepted, all.length)} (at least 98 %)`,
    'mutated endings': mutated.length,
    'mutated accepted unmarked': `${false_}, ${percent(false_, mutated.length)} (at most 0.1 %)`,
    'mutated marked': mutated.filter(({ outcome }) => outcome.ending === 'marked').length,
  }
}

function print(all: readonly Case[], played: readonly Played[], seconds: number): void {
  console.log('category          ways  no cause  golden accepted  mutated  accepted unmarked')
  for (const category of [...new Set(all.map((each) => each.category))].sort()) {
    const of = all.filter((each) => each.category === category)
    const own = played.filter((each) => each.own.category === category)
    const golden = own.filter(isGolden)
    const mutated = own.filter((each) => !isGolden(each))
    const cells = [of.length, of.length - golden.length, golden.filter(isAccepted).length, mutated.length]
    const row = cells.map((cell, at) => String(cell).padEnd([6, 10, 17, 9][at] ?? 0)).join('')
    console.log(`${category.padEnd(18)}${row}${mutated.filter(isAccepted).length}`)
  }
  for (const trial of trials) {
    const own = played.filter((each) => each.trial === trial)
    console.log(`  ${trial.padEnd(40)}${String(own.length).padEnd(8)}accepted ${own.filter(isAccepted).length}`)
  }
  for (const each of lines(played)) console.log(JSON.stringify(each))
  for (const { id, fault, diagnosis } of all) if (!diagnosis) console.log(`no reading shows the cause: ${id} ${fault}`)
  report('grounding', { ...summary(all, played), seconds })
}
