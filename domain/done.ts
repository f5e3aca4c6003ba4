import type { Approval, CallRun } from './approval.ts'
import { nameCall, questionOf, sayAsked } from './asked-action.ts'
import type { BriefLine, DoneOutcome, IncidentBrief } from './brief.ts'
import type { IncidentEvent } from './event.ts'
import { planOfDryRun } from './placement.ts'
import { sayAction, toSentence } from './say.ts'

/**
 * Lists writes with their verification, newest first; then actions that the policy refused, and
 * actions that people denied or did not answer.
 */
export function listDone(events: readonly IncidentEvent[]): IncidentBrief['done'] {
  const done: IncidentBrief['done'] = []
  const byCall = (event: IncidentEvent, callId: string) =>
    events.filter(
      (each) => each.attempt === event.attempt && 'callId' in each.metadata && each.metadata.callId === callId,
    )
  const refused = new Set<string>()
  for (const event of events.toReversed()) {
    if (event.kind === 'tool_started' && event.metadata.effect === 'write') {
      done.push(tellWrite(event, byCall(event, event.metadata.callId)))
    } else if (
      event.kind === 'call_judged' &&
      event.metadata.verdict === 'refuse' &&
      event.metadata.effect === 'write'
    ) {
      const { tool, targets, reason, code } = event.metadata
      const text = `${nameCall(tool, targets)}: ${reason}`
      if (!refused.has(`${tool} ${code}`)) done.push({ text: toSentence(text), outcome: 'refused', rows: [event.seq] })
      refused.add(`${tool} ${code}`)
    } else if (event.kind === 'approval_decided' && event.metadata.decision === 'deny') {
      done.push({ ...tellQuestion(events, event, event.metadata.reason), outcome: 'denied' })
    } else if (event.kind === 'approval_expired') {
      done.push({ ...tellQuestion(events, event, null), outcome: 'expired' })
    }
  }
  return done
}

function tellWrite(
  event: IncidentEvent<'tool_started'>,
  rows: readonly IncidentEvent[],
): IncidentBrief['done'][number] {
  const { tool, targets } = event.metadata
  const finished = rows.findLast((each) => each.kind === 'tool_finished')
  const proof = rows.findLast((each) => each.kind === 'verification')
  const asked = rows.find((each) => each.kind === 'approval_requested')
  const seqs = [event.seq, finished?.seq, proof?.seq].flatMap((seq) => seq ?? [])
  const said = finished?.kind === 'tool_finished' ? finished.metadata.said : undefined
  const text = asked?.kind === 'approval_requested' ? sayAction(asked.metadata.summary) : said
  const observed = proof?.kind === 'verification' && proof.metadata.outcome !== 'open' ? proof.metadata.observed : ''
  const what = text ?? nameCall(tool, targets)
  return { text: toSentence(observed ? `${what}: ${observed}` : what), outcome: outcomeOf(finished, proof), rows: seqs }
}

const proofOutcomes = { held: 'verified', not_held: 'verification_failed', unproven: 'unproven', open: 'open' } as const

function outcomeOf(finished: IncidentEvent | undefined, proof: IncidentEvent | undefined): DoneOutcome {
  if (proof?.kind === 'verification' && proof.metadata.outcome !== 'open') return proofOutcomes[proof.metadata.outcome]
  if (finished?.kind !== 'tool_finished') return 'running'
  return finished.metadata.outcome === 'done' ? 'open' : finished.metadata.outcome
}

function tellQuestion(
  events: readonly IncidentEvent[],
  event: IncidentEvent<'approval_decided'> | IncidentEvent<'approval_expired'>,
  why: string | null,
): BriefLine {
  const question = questionOf(events, event)
  const what = sayAsked(question)
  return { text: toSentence(why ? `${what}: ${why}` : what), rows: [...(question ? [question.seq] : []), event.seq] }
}

/** How many lines of a call's output are shown while the call runs. */
const shownLines = 20

/**
 * Computes the progress of an approved call from its rows; null until the call starts. `events`:
 * the log rows of the call's attempt, oldest first.
 */
export function foldCallRun(
  events: readonly IncidentEvent[],
  { id, attempt, callId, dryRun }: Pick<Approval, 'id' | 'attempt' | 'callId' | 'dryRun'>,
): CallRun | null {
  const rows = events.filter(
    (each) => each.attempt === attempt && 'callId' in each.metadata && each.metadata.callId === callId,
  )
  const started = rows.find((each) => each.kind === 'tool_started' && each.metadata.approvalId === id)
  if (!started) return null
  const finished = rows.findLast((each) => each.kind === 'tool_finished') as IncidentEvent<'tool_finished'> | undefined
  const proof = rows.findLast((each) => each.kind === 'verification') as IncidentEvent<'verification'> | undefined
  const printed = rows.flatMap((each) => (each.kind === 'tool_output' ? each.metadata.lines : []))
  const { said, result } = finished?.metadata ?? {}
  return {
    startedAt: started.at,
    endedAt: finished?.at ?? null,
    outcome: finished?.metadata.outcome ?? 'running',
    said: said ?? (result?.error ? toSentence(result.error.message) : ''),
    steps: foldSteps(rows, dryRun, finished !== undefined),
    output: printed.slice(-shownLines),
    verification: proof
      ? { outcome: proof.metadata.outcome, text: toSentence(proof.metadata.observed || proof.metadata.postcondition) }
      : null,
    rows: [started, finished, proof].flatMap((each) => each?.seq ?? []),
  }
}

const stepStates = { OK: 'done', FAILED: 'failed', SKIPPED: 'skipped' } as const

/**
 * Lists the steps of the plan, then steps that ran but are not in the plan. A call that has ended
 * has no waiting steps.
 */
function foldSteps(rows: readonly IncidentEvent[], dryRun: Approval['dryRun'], isOver: boolean): CallRun['steps'] {
  const steps = new Map<number, CallRun['steps'][number]>()
  for (const { step, action, vm, from, to } of planOfDryRun(dryRun.details)?.steps ?? []) {
    const text = `${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`
    steps.set(step, { step, text, state: isOver ? 'skipped' : 'waiting', detail: '' })
  }
  for (const row of rows) {
    if (row.kind === 'step_started') {
      const { step, action, vm, to } = row.metadata
      const text = steps.get(step)?.text ?? `${action} ${vm} to ${to}`
      steps.set(step, { step, text, state: 'running', detail: '' })
    } else if (row.kind === 'step_finished') {
      const { step, status, detail } = row.metadata
      steps.set(step, { step, text: steps.get(step)?.text ?? `step ${step}`, state: stepStates[status], detail })
    }
  }
  return [...steps.values()].sort((a, b) => a.step - b.step)
}
