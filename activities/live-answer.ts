import type { Db } from '../db/connect.ts'
import { publishLiveAnswer } from '../db/log/live.ts'
import type { LiveAnswer, Writing } from '../domain/chat.ts'
import type { TurnRef } from '../domain/step-key.ts'
import { withoutThoughts } from '../model/thoughts.ts'
import { cleanse } from '../safety/redact.ts'
import { showDetails } from './heartbeat.ts'

/** Twice a second at most; without a change once, so that a late watcher sees it within one. */
const tellEveryMs = 500
const tailCharacters = 400
/** More than is shown, so that a secret is seen whole. */
const readCharacters = 8_000

type About = { turn: TurnRef; maxTurns: number; model: string }

/**
 * Asks a model, and tells watchers how far its answer is: in notices of the database, which keeps
 * none and passes none on for an unwatched run, and as numbers in the heartbeat. An immediate
 * answer is not told of. Telling never fails the work.
 */
export async function withLiveAnswer<T>(
  db: Db,
  about: About,
  work: (onWriting: (writing: Writing) => void) => Promise<T>,
): Promise<T> {
  const beganMs = performance.now()
  let newest: Writing | null = null
  let told: LiveAnswer | null = null
  let telling: Promise<void> | null = null
  let isQuiet = false
  const tell = (state: LiveAnswer['state']) => {
    told = toLive(about, state, newest, (performance.now() - beganMs) / 1000)
    telling = publishLiveAnswer(db, told)
      .then(
        () => {},
        () => {},
      )
      .finally(() => {
        telling = null
      })
  }
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - beganMs) / 1000)
    const tokens = newest?.counted ?? newest?.pieces ?? 0
    showDetails({ turn: about.turn.turn, seconds, tokens })
    isQuiet = !isQuiet && tokens === (told?.tokens ?? -1)
    if (!isQuiet && telling === null) tell(newest === null ? 'asked' : 'writing')
  }, tellEveryMs)
  try {
    return await work((writing) => {
      newest = writing
    })
  } finally {
    clearInterval(timer)
    showDetails(null)
    // After what is on its way, or a watcher would see it written on.
    if (told !== null) void Promise.resolve(telling).then(() => tell('ended'))
  }
}

function toLive(
  { turn, maxTurns, model }: About,
  state: LiveAnswer['state'],
  writing: Writing | null,
  seconds: number,
): LiveAnswer {
  const { incidentId, attempt } = turn
  return {
    incidentId,
    attempt,
    turn: turn.turn,
    maxTurns,
    model: cleanse(model).slice(0, 100).toWellFormed(),
    state,
    seconds: Math.round(seconds * 10) / 10,
    tokens: writing?.counted ?? writing?.pieces ?? 0,
    isCounted: (writing?.counted ?? null) !== null,
    tail: state === 'writing' && writing ? tailOf(writing) : '',
  }
}

/**
 * The end of the text: without reasoning, as in rows, and without what a row would not hold, before
 * it is cut.
 */
function tailOf({ content, call }: Writing): string {
  const said = withoutThoughts(content).slice(-readCharacters)
  const called = call ? `${call.name} ${call.arguments.slice(-readCharacters)}` : ''
  const text = [said, called].filter((each) => each.trim() !== '').join('\n')
  return cleanse(text.toWellFormed()).slice(-tailCharacters).toWellFormed()
}
