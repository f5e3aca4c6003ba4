import type { Db } from '../db/connect.ts'
import { publishLiveAnswer } from '../db/log/live.ts'
import type { LiveAnswer, Writing } from '../domain/chat.ts'
import type { TurnRef } from '../domain/step-key.ts'
import { withoutThoughts } from '../model/thoughts.ts'
import { cleanse } from '../safety/redact.ts'
import { showDetails } from './heartbeat.ts'

/**
 * Milliseconds between reports on an answer. Without progress there is one report per second, for
 * people who begin to watch later.
 */
const tellEveryMs = 500
const tailCharacters = 400
/**
 * Characters at the end of the answer that are read. More characters are read than are shown, so
 * that a secret is recognised as a whole.
 */
const readCharacters = 8_000

type About = { turn: TurnRef; maxTurns: number; model: string }

/**
 * Sends a request to a model and reports the progress of the answer. People who watch get reports
 * by notifications of the database. No notification is stored, or sent for a run that nobody
 * watches. The heartbeat gets the progress as numbers. An immediate answer is not reported. A
 * failed report never fails the work.
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
    // Waits for earlier reports, because otherwise a watcher would see the answer as unfinished.
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
 * Returns the end of the text, without reasoning (as in rows) and with secrets removed before it is
 * cut.
 */
function tailOf({ content, call }: Writing): string {
  const said = withoutThoughts(content).slice(-readCharacters)
  const called = call ? `${call.name} ${call.arguments.slice(-readCharacters)}` : ''
  const text = [said, called].filter((each) => each.trim() !== '').join('\n')
  return cleanse(text.toWellFormed()).slice(-tailCharacters).toWellFormed()
}
