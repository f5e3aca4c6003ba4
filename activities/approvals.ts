import { StaleRunError } from '../db/append.ts'
import { requestApproval } from '../db/approvals/ask.ts'
import { decide, voteOfEditor } from '../db/approvals/decide.ts'
import { approvalOfCall, approvalState, pendingOfAction, pendingOfTool } from '../db/approvals/find.ts'
import { readDecision, withdrawPending } from '../db/approvals/settle.ts'
import { tokensAmong, voidToken } from '../db/approvals/tokens.ts'
import { recordSecurityEvent } from '../db/audit.ts'
import { stopWish } from '../db/closing.ts'
import { type Db, databaseTime, type Trx } from '../db/connect.ts'
import { lockIncident, setWaiting } from '../db/incidents.ts'
import { leaseKeyByName } from '../db/registry.ts'
import type { SettingsReader } from '../db/settings.ts'
import { actionByKeys, keyReader } from '../domain/approval.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { type CallPlace, callId, stepKey } from '../domain/step-key.ts'
import type { Preparation } from '../domain/tool.ts'
import type { Call, Ruling } from '../safety/judge.ts'
import { toolFacts, tools } from '../tools/registry.ts'
import type { DecideAnswer, DecideMessage, DecisionStatus, ReceivedDecision } from '../workflows/outcome.ts'
import { NonRetryable } from './failure.ts'
import { assertOwnRun, ownRunOf } from './own-run.ts'
import type { EffectiveCall, Ruled } from './rule.ts'

const joinedLookMs = 5_000

/** The activities by which a run in Temporal weighs decisions and reads what was decided. */
export function approvalActivities({ db }: { db: Db }) {
  return {
    /** One decision that came through Temporal: runs that began with version 0.1.0 send them one by one. */
    async decide(incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      await assertOwnRun(db, await ownRunOf(db, incidentId))
      return await decideByToken(db, incidentId, message, message.via === 'update' ? 'update' : 'signal')
    },

    /** Weighs decisions that came through Temporal, in their order, and answers each. */
    async decideAll(incidentId: string, attempt: number, batch: ReceivedDecision[]): Promise<DecideAnswer[]> {
      await assertOwnRun(db, { incidentId, attempt })
      return await weighAll(db, incidentId, batch)
    },

    /** Does a person want this run to stop? A signal alone says nothing about who sent it. */
    async isStopWanted(incidentId: string, attempt: number): Promise<boolean> {
      if ((await assertOwnRun(db, { incidentId, attempt })) === 'closed') return true
      return (await stopWish(db, incidentId, attempt)) !== null
    },

    /** The row that a waiting run goes by. A denied or withdrawn one puts the incident back to work. */
    async readDecision(
      incidentId: string,
      attempt: number,
      approvalId: string,
    ): Promise<{ status: DecisionStatus; remainingMs: number }> {
      await assertOwnRun(db, { incidentId, attempt })
      const read = await readDecision(db, approvalId)
      if (!read) return { status: 'withdrawn', remainingMs: 0 }
      if (read.status === 'denied' || read.status === 'withdrawn') await returnToWork(db, incidentId, attempt)
      // No signal wakes a run that joined another incident's approval: it looks by itself.
      const isJoined = read.incidentId !== incidentId
      return {
        status: read.status,
        remainingMs: isJoined ? Math.min(read.remainingMs, joinedLookMs) : read.remainingMs,
      }
    },
  }
}

export type ApprovalActivities = ReturnType<typeof approvalActivities>

/** Decides by the same function as every other door. `by` in a message is ignored: the token says who decides. */
async function decideByToken(
  db: Db,
  incidentId: string,
  message: DecideMessage,
  via: 'signal' | 'update',
): Promise<DecideAnswer> {
  const { token, decision, approvalId, reason } = message
  const outcome = await decide(db, {
    approvalId: typeof approvalId === 'string' ? approvalId : null,
    incidentId,
    token: typeof token === 'string' ? token : '',
    decision: decision === 'approve' ? 'approve' : 'deny',
    reason: typeof reason === 'string' ? reason.slice(0, 2000) : null,
    via,
  })
  return {
    outcome: outcome.outcome,
    status: 'status' in outcome ? outcome.status : null,
    message: 'message' in outcome ? outcome.message : null,
  }
}

/**
 * One query finds the messages without a valid token, so that a flood of forgeries costs little. A token that decided nothing
 * is void afterwards: everybody who may read the workflow's history can read it.
 */
async function weighAll(db: Db, incidentId: string, batch: ReceivedDecision[]): Promise<DecideAnswer[]> {
  const valid = await tokensAmong(db, [...new Set(batch.flatMap(getTokenTexts))])
  const forged = batch.filter((each) => !getTokenTexts(each).some((text) => valid.has(text)))
  if (forged.length > 0) await recordForgeries(db, incidentId, forged)
  const answers: DecideAnswer[] = []
  for (const each of batch) {
    const { message, door } = each
    answers.push(message && valid.has(message.token) ? await decideByToken(db, incidentId, message, door) : noDecision)
    // One that was spent for this very decision stays as it is.
    for (const text of getTokenTexts(each)) if (valid.has(text)) await voidToken(db, text, door)
  }
  return answers
}

async function returnToWork(db: Db, incidentId: string, attempt: number): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.attempt !== attempt) throw new StaleRunError(incidentId, attempt, row?.attempt ?? 0)
    await setWaiting(trx, incidentId, false)
  })
}

const noDecision: DecideAnswer = {
  outcome: 'forbidden',
  status: null,
  message: 'this holds no decision with a valid token',
}

function getTokenTexts({ message, texts }: ReceivedDecision): string[] {
  return message ? [message.token, ...texts] : texts
}

async function recordForgeries(db: Db, incidentId: string, forged: readonly ReceivedDecision[]): Promise<void> {
  const [first] = forged
  await db.transaction().execute(async (trx) => {
    if (!(await lockIncident(trx, incidentId))) return
    await recordSecurityEvent(trx, incidentId, {
      code: 'UNKNOWN_TOKEN',
      door: first?.door ?? 'signal',
      subject: 'unknown',
      detail: `${forged.length === 1 ? '1 message was' : `${forged.length} messages were`} refused: no valid decision token`,
    })
  })
}

/** Asking people about a call: what was asked before, joining a question of another incident, and a new one. */

/** What an earlier run of this activity already decided about the call: found after a crash, it is not decided again. */
export async function knownAnswer(trx: Trx, last: IncidentEvent<'call_judged'> | undefined): Promise<Ruled | null> {
  if (!last) return null
  if (last.metadata.verdict === 'refuse') return { kind: 'next' }
  const pending = await approvalOfCall(trx, last.incidentId, last.metadata.callId, ['pending'])
  return pending === null ? null : { kind: 'ask', approvalId: pending, expiresInMs: await lookAgainInMs(trx, pending) }
}

/** The pending question of another incident about this action, also under other names of its things; null without one. */
export async function findPending(
  trx: Trx,
  incidentId: string,
  tool: string,
  { actionDigest, arguments: args, targets }: Pick<Ruling, 'actionDigest' | 'arguments' | 'targets'>,
): Promise<string | null> {
  const same = await pendingOfAction(trx, actionDigest, incidentId)
  const facts = toolFacts.get(tool)
  if (same !== null || args === null || !facts) return same
  const others = await pendingOfTool(trx, tool, incidentId)
  if (others.length === 0) return null
  const named = [...targets, ...others.flatMap((each) => each.targets)]
  const keyOf = keyReader(Object.fromEntries(await leaseKeyByName(trx, named)))
  const own = actionByKeys(facts, { arguments: args, targets }, keyOf)
  return others.find((each) => actionByKeys(facts, each, keyOf) === own)?.id ?? null
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
