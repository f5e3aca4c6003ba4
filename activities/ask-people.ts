import { requestApproval } from '../db/approvals/ask.ts'
import { voteOfEditor } from '../db/approvals/decide.ts'
import { approvalOfCall, approvalState } from '../db/approvals/find.ts'
import { withdrawPending } from '../db/approvals/settle.ts'
import type { Trx } from '../db/connect.ts'
import { setWaiting } from '../db/incidents.ts'
import type { SettingsReader } from '../db/settings.ts'
import { databaseTime } from '../db/time.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { type CallPlace, callId, stepKey } from '../domain/step-key.ts'
import type { Preparation } from '../domain/tool.ts'
import type { Call, Ruling } from '../safety/judge.ts'
import { toolFacts, tools } from '../tools/registry.ts'
import { NonRetryable } from './failure.ts'
import type { EffectiveCall, Ruled } from './rule.ts'

/** Asking people about a call: what was asked before, joining a question of another incident, and a new one. */

/** What an earlier run of this activity already decided about the call: found after a crash, it is not decided again. */
export async function knownAnswer(trx: Trx, last: IncidentEvent<'call_judged'> | undefined): Promise<Ruled | null> {
  if (!last) return null
  if (last.metadata.verdict === 'refuse') return { kind: 'next' }
  const pending = await approvalOfCall(trx, last.incidentId, last.metadata.callId, ['pending'])
  return pending === null ? null : { kind: 'ask', approvalId: pending, expiresInMs: await lookAgainInMs(trx, pending) }
}

/** The approval this call joined was settled for the other incident: its action is done or denied, and not asked once more. */
export async function decidedElsewhere(
  trx: Trx,
  last: IncidentEvent<'call_judged'> | undefined,
): Promise<Pick<Ruling, 'verdict' | 'code' | 'reason' | 'hint'> | null> {
  if (last?.metadata.verdict !== 'ask' || last.metadata.approvalId === null) return null
  const approval = await approvalState(trx, last.metadata.approvalId)
  if (!approval || approval.incidentId === last.incidentId || approval.status === 'pending') return null
  return {
    verdict: 'refuse',
    code: 'DECIDED_ELSEWHERE',
    reason: `the very same action was asked for ${approval.incidentId} and is ${approval.status}`,
    hint: 'Look at the targets again: what they need may have been done.',
  }
}

/** The least a run waits before it looks again. */
const lookAgainMs = 250

async function lookAgainInMs(trx: Trx, approvalId: string): Promise<number> {
  const expiresAt = (await approvalState(trx, approvalId))?.expiresAt ?? ''
  return Math.max(lookAgainMs, Date.parse(expiresAt) - Date.parse(await databaseTime(trx)))
}

/** Somebody is asked about this very action already, for another incident: one answer serves both. */
export async function joinApproval(trx: Trx, incidentId: string, approvalId: string): Promise<Ruled> {
  await setWaiting(trx, incidentId, true)
  return { kind: 'ask', approvalId, expiresInMs: Math.min(5_000, await lookAgainInMs(trx, approvalId)) }
}

type Asking = {
  call: EffectiveCall
  ruling: Ruling
  prepared: Call['prepared']
  expirySeconds: number
  /** How many people must agree. */
  required: number
  step: number | undefined
}

export async function askPeople(trx: Trx, place: CallPlace, asking: Asking): Promise<Ruled> {
  const { call, ruling, prepared } = asking
  // The judge asks about prepared writes only: what cannot be prepared is refused.
  if (!prepared?.ok) throw new NonRetryable('ASKED_UNPREPARED')
  const { preparation } = prepared
  const id = callId(place.turn, place.call)
  const replaced = await approvalOfCall(trx, place.incidentId, id, ['pending', 'approved'])
  if (replaced) await withdrawPending(trx, place.incidentId, 'the platform changed since it was asked')
  const approval = await requestApproval(trx, {
    incidentId: place.incidentId,
    attempt: place.attempt,
    turn: place.turn,
    callId: id,
    tool: call.tool,
    args: ruling.arguments ?? {},
    targets: ruling.targets,
    reason: typeof ruling.arguments?.reason === 'string' ? ruling.arguments.reason : '',
    actionDigest: ruling.actionDigest,
    stateFingerprint: preparation.stateFingerprint,
    risk: ruling.risk,
    reversible: toolFacts.get(call.tool)?.reversible ?? false,
    required: asking.required,
    dryRun: withProof(call.tool, preparation.dryRun),
    expirySeconds: asking.expirySeconds,
    stepKey: stepKey(place, place.turn, 'approval_requested', place.call, asking.step),
    replaces: replaced,
    actor: agentActor,
  })
  // The person who wrote the arguments has approved them by writing them, if that person may. Decided before the run begins to wait: nobody will wake it, so it looks at once.
  if (call.edit && (await voteOfEditor(trx, approval.id, call.edit)) !== 'pending') {
    return { kind: 'ask', approvalId: approval.id, expiresInMs: lookAgainMs }
  }
  return { kind: 'ask', approvalId: approval.id, expiresInMs: await lookAgainInMs(trx, approval.id) }
}

/** What will prove that it worked is said before anybody decides: by the call itself where it knows better, else by its tool. */
function withProof(tool: string, dryRun: Preparation['dryRun']): Preparation['dryRun'] {
  const proof = dryRun.proof ?? tools.get(tool)?.proof
  return proof ? { ...dryRun, proof } : dryRun
}

/** How long people may take: what the settings say of the tool, else the shorter of the default and the age of its dry run. */
export function expirySecondsOf(settings: SettingsReader, tool: string): number {
  const { value, source } = settings.effective('approval.expiry', tool)
  const agesAfter = toolFacts.get(tool)?.dryRunAgesAfterSeconds
  return source === 'default' && agesAfter !== undefined ? Math.min(value as number, agesAfter) : (value as number)
}
