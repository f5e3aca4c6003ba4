import { z } from 'zod'
import type { IncidentEvent } from '../../../domain/event.ts'
import { wilson } from '../../../domain/share.ts'
import { wordOfEnding } from './act.ts'
import type { Recording } from './recording.ts'
import type { Play } from './rows.ts'
import { keyOfCall, readCalls } from './world.ts'

const count = z.number().int().min(0)
const side = z.object({
  /** How the investigation ended: `resolved repaired`, `escalated none`, `would write …`. */
  end: z.string(),
  writes: z.array(z.string()),
  turns: count,
  tokens: count,
  /**
   * True if the server reported no plausible token count. Then `tokens` is the least possible count
   * for the bytes.
   */
  isAssumed: z.boolean().default(false),
})

/** The result for one incident. `comparable`: both sides ended in a state that the log contains. */
export const trialResult = z.object({
  incidentId: z.string(),
  type: z.string(),
  title: z.string(),
  /** Number of the ending's row. If the log has a newer ending, the investigation is repeated. */
  endingSeq: count,
  outcome: z.enum(['comparable', 'not_comparable', 'unanswered']),
  /** The reason why the trial run is not compared with the log. Null if it is compared. */
  why: z.string().nullable(),
  log: side,
  trial: side,
  isSameEnding: z.boolean(),
  isSameWrites: z.boolean(),
  /**
   * `of`: number of reads that the ending in the log quotes. `shared`: number of these reads that
   * the tried model quotes too.
   */
  quoted: z.object({ shared: count, of: count }),
})
export type TrialResult = z.infer<typeof trialResult>

/** Compares a trial run with the log of the investigation. Pure. */
export function comparePlay(recording: Recording, play: Play): TrialResult {
  const { incident, events, attempt, ending } = recording
  const rows = events.filter((event) => event.attempt === attempt)
  const own = readCalls(recording).filter(({ isWrite }) => isWrite)
  const answers = rows.flatMap((row) => (row.kind === 'model_answered' ? [row.metadata.usage] : []))
  const end = play.end ?? { kind: 'unanswered' as const, why: 'no ending' }
  const isCompared = end.kind === 'ended' || end.kind === 'would_write'
  const word = isCompared ? end.word : end.kind
  const asLogged = wordOf(ending, rows)
  const wanted = quotedBy(rows)
  const quoted = quotedBy(play.rows.filter(({ seq }) => seq > recording.opening.seq))
  const sameKeys =
    own.length === play.proposed.size && own.every(({ state, key }) => play.proposed.has(`${state}:${key}`))
  return {
    incidentId: incident.id,
    type: incident.type,
    title: incident.title,
    endingSeq: ending.seq,
    outcome: isCompared ? 'comparable' : end.kind,
    why: isCompared ? null : end.why,
    log: {
      end: asLogged,
      writes: own.map(({ tool }) => tool),
      turns: answers.length,
      tokens: answers.reduce((sum, usage) => sum + usage.promptTokens + usage.completionTokens, 0),
      isAssumed: answers.some((usage) => usage.isAssumed === true),
    },
    trial: {
      end: word,
      writes: [...play.proposed.values()],
      turns: play.turns,
      tokens: play.tokens,
      isAssumed: play.isAssumed,
    },
    isSameEnding: isCompared && word === asLogged,
    isSameWrites: isCompared && sameKeys,
    quoted: { shared: [...wanted].filter((key) => quoted.has(key)).length, of: wanted.size },
  }
}

/**
 * Describes how an investigation ended, by the agent's call, or else by the code of the limit that
 * ended it.
 */
function wordOf(ending: Recording['ending'], rows: readonly IncidentEvent[]): string {
  const call = rows.findLast((row) => row.kind === 'tool_started' && row.metadata.effect === 'terminal')
  if (call?.kind === 'tool_started' && call.seq > 0 && isBefore(call, ending)) return wordOfEnding(call.metadata)
  return ending.kind === 'resolved' ? `resolved ${ending.metadata.outcome}` : `escalated ${ending.metadata.code}`
}

/**
 * Whether a call closed the incident: it is at most 4 rows before the ending. An earlier call was
 * refused by the core API.
 */
function isBefore({ seq }: IncidentEvent, ending: IncidentEvent): boolean {
  return seq < ending.seq && ending.seq - seq <= 4
}

/**
 * Lists the reads that are quoted in claims of endings and in supported causes. Reads are
 * identified by their calls, because a trial run has other row numbers than the log of the
 * investigation.
 */
function quotedBy(rows: readonly IncidentEvent[]): Set<string> {
  const keys = new Map<number, string>()
  const ofCall = new Map<string, string>()
  const seqs: number[] = []
  for (const row of rows) {
    if (row.kind === 'alert_received') keys.set(row.seq, `alert ${row.metadata.fingerprint}`)
    if (row.kind === 'context_assembled') keys.set(row.seq, 'context')
    if (row.kind === 'tool_finished') {
      const { callId, tool, arguments: given } = row.metadata
      ofCall.set(callId, keyOfCall(tool, given) ?? callId)
      keys.set(row.seq, ofCall.get(callId) as string)
    }
    if (row.kind === 'verification') keys.set(row.seq, ofCall.get(row.metadata.callId) ?? 'verification')
    if (row.kind === 'call_judged' && row.metadata.verdict === 'run') seqs.push(...quotesOf(row.metadata.arguments))
  }
  return new Set(seqs.flatMap((seq) => keys.get(seq) ?? []))
}

const quotes = z.array(z.looseObject({ seq: z.number() }))
const withClaims = z.looseObject({ claims: z.array(z.looseObject({ quotes })) })
const withQuotes = z.looseObject({ hypothesis: z.literal('supported'), quotes })

function quotesOf(given: Record<string, unknown> | null): number[] {
  const claimed = withClaims.safeParse(given).data?.claims.flatMap((claim) => claim.quotes) ?? []
  const noted = withQuotes.safeParse(given).data?.quotes ?? []
  return [...claimed, ...noted].map(({ seq }) => seq)
}

/** Number of comparable incidents that a verdict needs. */
export const minComparable = 30
/** The share of equal results, with 95 % confidence, from which two models count as alike. */
const alikeShare = 0.8

export type TrialTotals = {
  comparable: number
  notComparable: number
  unanswered: number
  sameEnding: number
  sameWrites: number
  /** Number of incidents with the same ending and the same writes. */
  alike: number
  quoted: { shared: number; of: number }
  turns: { log: number; trial: number }
  tokens: { log: number; trial: number }
  /** Sides whose `tokens` are the least possible, because a server reported no count. */
  assumed: { log: boolean; trial: boolean }
  /** The verdict. Null below `minComparable`, because a share of few incidents proves nothing. */
  verdict: 'alike' | 'different' | 'undecided' | null
}

/** Adds up results. Turns and tokens include only comparable incidents. Pure. */
export function addUp(results: readonly TrialResult[]): TrialTotals {
  const compared = results.filter(({ outcome }) => outcome === 'comparable')
  const sum = (of: (result: TrialResult) => number) => compared.reduce((total, result) => total + of(result), 0)
  const count = (isSo: (result: TrialResult) => boolean) => compared.filter(isSo).length
  const alike = count(({ isSameEnding, isSameWrites }) => isSameEnding && isSameWrites)
  const { low, high } = wilson(alike, compared.length)
  const decided = low >= alikeShare ? 'alike' : high < alikeShare ? 'different' : 'undecided'
  return {
    comparable: compared.length,
    notComparable: results.filter(({ outcome }) => outcome === 'not_comparable').length,
    unanswered: results.filter(({ outcome }) => outcome === 'unanswered').length,
    sameEnding: count(({ isSameEnding }) => isSameEnding),
    sameWrites: count(({ isSameWrites }) => isSameWrites),
    alike,
    quoted: { shared: sum(({ quoted }) => quoted.shared), of: sum(({ quoted }) => quoted.of) },
    turns: { log: sum(({ log }) => log.turns), trial: sum(({ trial }) => trial.turns) },
    tokens: { log: sum(({ log }) => log.tokens), trial: sum(({ trial }) => trial.tokens) },
    assumed: { log: compared.some(({ log }) => log.isAssumed), trial: compared.some(({ trial }) => trial.isAssumed) },
    verdict: compared.length < minComparable ? null : decided,
  }
}
