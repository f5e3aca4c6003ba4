import type { Claim } from '../../../domain/claim.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import { callsPerAnswer } from '../../../model/transcript.ts'
import { fold } from '../../../safety/fold.ts'
import { answerCorrection, hasWarnedOfProse, proseCorrection } from '../../../safety/prose.ts'
import { budgetsOf, nearBudget, spentBudget } from '../../../safety/ruling.ts'
import { tools } from '../../../tools/registry.ts'
import { type LoopPorts, runLoop } from '../../../workflows/loop.ts'
import { actOnce } from './act.ts'
import { askTurn, type Candidate } from './ask.ts'
import type { Recording } from './recording.ts'
import { addRow, beginPlay, type Play } from './rows.ts'

type TurnOutcome = Awaited<ReturnType<LoopPorts['think']>>

/** The usual number of calls per response. Only in the JSON protocol, a response has one call. */
const callsUsual = 4

/** The token budget for all trial runs is used up. */
export class TokensSpent extends Error {
  override name = 'TokensSpent'
}

/**
 * Repeats an investigation with the tried model (a trial run). Uses the product's loop and judge,
 * the same first turn, and results from the log. Has no effects. Throws TokensSpent above
 * `maxTokens`, and any error of `candidate.ask`.
 */
export async function playAgain(
  recording: Recording,
  candidate: Candidate,
  { protocol, maxTokens }: { protocol: 'native' | 'json'; maxTokens: number },
): Promise<Play> {
  const play = beginPlay(recording, protocol)
  const { protocol: recorded, maxTurns } = recording.opening.metadata
  const turns = maxTurns * (play.protocol === 'json' && recorded === 'native' ? callsUsual : 1)
  const ports: LoopPorts = {
    async think(turn) {
      if (play.tokens >= maxTokens) throw new TokensSpent()
      return await think(play, candidate, turn)
    },
    async act(turn, index) {
      const call = lastAnswer(play).calls[index]
      if (!call) return { kind: 'next' }
      return await actOnce(play, turn, call)
    },
    interrupted: async () => play.end !== null,
    isStillWanted: async () => play.end === null,
    waitForModel: async () => undefined,
    verify: async () => ({ kind: 'next' }),
    waitForDecision: async () => 'interrupted',
    pause: async () => 'over',
    checkpoint: async () => undefined,
    now: () => 0,
  }
  const limits = { maxTurns: turns, timeBudgetMs: Number.POSITIVE_INFINITY, correctionsAreFree: true }
  const end = await runLoop(ports, limits)
  if (end.end === 'escalate') play.end ??= { kind: 'ended', word: `escalated ${end.code}` }
  play.end ??= { kind: 'unanswered', why: 'no ending' }
  return play
}

async function think(play: Play, candidate: Candidate, turn: number): Promise<TurnOutcome> {
  const { attempt, opening } = play.recording
  const state = fold(play.rows, attempt)
  const budgets = budgetsOf(play.rows, attempt, opening.metadata)
  const spent = spentBudget(state, budgets)
  if (spent) return { kind: 'over_budget', budget: spent }
  const warning = nearBudget(state, turn, budgets)
  if (warning) addRow(play, { kind: 'correction_sent', turn, metadata: warning })
  const answered = await askTurn(play, candidate, turn)
  if (!answered) return { kind: 'closed' }
  const { calls, final, problem } = answered.metadata
  if (problem) {
    addRow(play, { kind: 'correction_sent', turn, metadata: problem })
    return { kind: 'correction' }
  }
  if (final) return concludeProse(play, turn, final)
  return {
    kind: 'calls',
    calls: calls.slice(0, callsPerAnswer).map(({ tool }) => (tools.has(tool) ? tool : 'unknown')),
  }
}

/** Handles text without a call, which ends nothing and is corrected once. */
function concludeProse(
  play: Play,
  turn: number,
  final: NonNullable<IncidentEvent<'model_answered'>['metadata']['final']>,
): TurnOutcome {
  const { attempt, incident, texts } = play.recording
  addRow(play, { kind: 'commented', turn, metadata: { text: final.text, confidence: final.confidence, action: null } })
  const state = fold(play.rows, attempt)
  if (hasWarnedOfProse(state)) return { kind: 'unproven' }
  const claims = (final.claims ?? []).flatMap((each): Claim[] =>
    'quotes' in each ? [{ kind: each.kind, text: each.text, quotes: each.quotes }] : [],
  )
  const wrong = answerCorrection({ text: final.text, claims }, state, incident.id, texts)
  addRow(play, { kind: 'correction_sent', turn, metadata: wrong ?? proseCorrection(state) })
  return { kind: 'correction' }
}

function lastAnswer({ rows }: Play): IncidentEvent<'model_answered'>['metadata'] {
  const row = rows.findLast((each) => each.kind === 'model_answered')
  if (!row) throw new Error('no answer proposed this call')
  return row.metadata
}
