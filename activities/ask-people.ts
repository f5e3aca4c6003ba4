import { refusalForRisk } from '../db/access/operators.ts'
import { announceAsked, markCardLead, requestApproval } from '../db/approvals/ask.ts'
import { voteOfEditor, voteOfRequester } from '../db/approvals/decide.ts'
import {
  approvalState,
  latestOfCall,
  type PendingElsewhere,
  pendingOfAction,
  pendingOfTool,
} from '../db/approvals/find.ts'
import { withdrawPending } from '../db/approvals/settle.ts'
import { databaseTime } from '../db/clock.ts'
import type { Trx } from '../db/connect.ts'
import { setWaiting } from '../db/incidents/incidents.ts'
import { leaseKeyByName } from '../db/inventory/registry.ts'
import { eventsOf } from '../db/log/events.ts'
import type { SettingsReader } from '../db/settings.ts'
import { actionByKeys, keyReader } from '../domain/approval.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { type ManualChange, manualChangeType } from '../domain/manual-change.ts'
import { resourceKey } from '../domain/registry.ts'
import type { SiteDecision } from '../domain/site-decision.ts'
import { type CallRef, callId, parseCallId, stepKey } from '../domain/step-key.ts'
import { type Preparation, requiredApprovals } from '../domain/tool.ts'
import type { Call, Policy, Ruling } from '../safety/judge.ts'
import { toolFacts, tools } from '../tools/registry.ts'
import type { CallOutcome } from '../workflows/outcome.ts'
import { NonRetryable } from './failures.ts'
import {
  type CallToRule,
  type EffectiveCall,
  judgeCall,
  type RuledPlace,
  recordRuling,
  rulingsOf,
} from './judge-call.ts'

type PendingApproval = Extract<CallOutcome, { kind: 'ask' }>

/**
 * Finds an earlier decision about the call. Either a crashed attempt of this activity requested the
 * decision, or the call was on the card of an earlier call. In the second case people decided
 * before they knew the earlier call's result. If that earlier call failed, the approval is
 * withdrawn, and this call is judged as if nobody had been asked.
 */
export async function earlierDecision(
  trx: Trx,
  place: RuledPlace,
  events: readonly IncidentEvent[],
  last: IncidentEvent<'call_judged'>,
): Promise<PendingApproval | { kind: 'next' } | null> {
  if (last.metadata.verdict === 'refuse') return { kind: 'next' }
  const asked = await latestOfCall(trx, place, last.metadata.callId)
  const isOpen = asked?.status === 'pending' || asked?.status === 'approved'
  if (!asked || (place.approvalId !== null && asked.status !== 'pending')) return null
  const failed = isOpen && asked.askedWith !== null ? earlierFailure(events, place, asked.id) : null
  if (failed !== null) {
    await withdrawPending(trx, place.incidentId, `${failed}, an earlier call of the same turn, did not work`, asked.id)
    return null
  }
  if (asked.status === 'pending') {
    await announceAsked(trx, asked.id)
    await setWaiting(trx, place.incidentId, true)
    return { kind: 'ask', approvalId: asked.id, expiresInMs: await lookAgainInMs(trx, asked.id) }
  }
  // Returns a decision from before this call's turn; the run reads that decision at once.
  const isDecided = isOpen || asked.status === 'denied' || asked.status === 'expired'
  return isDecided ? { kind: 'ask', approvalId: asked.id, expiresInMs: lookAgainMs } : null
}

/**
 * Returns the tool of an earlier call that failed after approval of this call was requested; null
 * if none failed.
 */
function earlierFailure(events: readonly IncidentEvent[], place: CallRef, approvalId: string): string | null {
  const asked = events.findLast(
    (event) => event.kind === 'approval_requested' && event.metadata.approvalId === approvalId,
  )
  for (const event of events) {
    if (event.seq < (asked?.seq ?? 0) || event.attempt !== place.attempt) continue
    if (event.kind !== 'tool_finished' && event.kind !== 'verification') continue
    const at = parseCallId(event.metadata.callId)
    if (at?.turn !== place.turn || at.call >= place.call) continue
    const hasFailed =
      event.kind === 'verification'
        ? event.metadata.outcome === 'not_held'
        : event.metadata.effect === 'write' && event.metadata.outcome !== 'done'
    if (hasFailed) return event.metadata.tool
  }
  return null
}

/**
 * Finds another incident's pending approval of this action, under any name of the resources; null
 * if there is none.
 */
export async function findPending(
  trx: Trx,
  incidentId: string,
  tool: string,
  { actionDigest, arguments: args, targets }: Pick<Ruling, 'actionDigest' | 'arguments' | 'targets'>,
): Promise<PendingElsewhere | null> {
  const same = await pendingOfAction(trx, actionDigest, incidentId)
  const facts = toolFacts.get(tool)
  if (same !== null || args === null || !facts) return same
  const others = await pendingOfTool(trx, tool, incidentId)
  if (others.length === 0) return null
  const named = [...targets, ...others.flatMap((each) => each.targets)]
  const keyOf = keyReader(Object.fromEntries(await leaseKeyByName(trx, named)))
  const own = actionByKeys(facts, { arguments: args, targets }, keyOf)
  return others.find((each) => actionByKeys(facts, each, keyOf) === own) ?? null
}

/** Shortest time, in milliseconds, until a run reads an approval again. */
const lookAgainMs = 250

async function lookAgainInMs(trx: Trx, approvalId: string): Promise<number> {
  const expiresAt = (await approvalState(trx, approvalId))?.expiresAt ?? ''
  return Math.max(lookAgainMs, Date.parse(expiresAt) - Date.parse(await databaseTime(trx)))
}

/**
 * Joins another incident's pending approval of this action, so that one decision serves both
 * incidents.
 */
export async function joinApproval(trx: Trx, incidentId: string, approvalId: string): Promise<PendingApproval> {
  await setWaiting(trx, incidentId, true)
  return { kind: 'ask', approvalId, expiresInMs: Math.min(5_000, await lookAgainInMs(trx, approvalId)) }
}

type Asking = {
  call: EffectiveCall
  ruling: Ruling
  prepared: Call['prepared']
  policy: Policy
  settings: SettingsReader
  step?: number | undefined
  /** Whether people are notified at once. */
  isAnnounced: boolean
  /** The first approval of the card, if this call is asked about before its turn. */
  lead?: string
  /** The write that a person requested, if this call is that write. */
  manual?: ManualChange | null
}

export async function askPeople(trx: Trx, place: RuledPlace, asking: Asking): Promise<PendingApproval> {
  const { call, ruling, prepared, manual } = asking
  // Throws for an unprepared write, because the judge refuses a write that cannot be prepared.
  if (!prepared?.ok) throw new NonRetryable('ASKED_UNPREPARED')
  const { preparation } = prepared
  const id = callId(place.turn, place.call)
  const before = await latestOfCall(trx, place, id)
  const replaced = before?.status === 'pending' || before?.status === 'approved' ? before.id : null
  if (replaced) await withdrawPending(trx, place.incidentId, 'the platform changed since the request', replaced)
  const proved = withProof(call.tool, preparation.dryRun)
  const dryRun = withSite(withUndo(call.tool, ruling.arguments ?? {}, proved), ruling)
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
    reversible: toolFacts.get(call.tool)?.reversible === true || 'undo' in dryRun.details,
    required: await countNeeded(trx, asking),
    dryRun,
    expirySeconds: expirySecondsOf(asking.settings, call.tool),
    stepKey: stepKey(place, place.turn, 'approval_requested', place.call, asking.step),
    replaces: replaced,
    askedWith: asking.lead ?? before?.askedWith ?? null,
    isAnnounced: asking.isAnnounced && !manual,
    actor: place.actor ?? agentActor,
  })
  // Counts changed arguments as the vote of their author, if the author may approve. The run then
  // reads the approval at once, because no signal will wake it for this vote.
  if (call.edit && (await voteOfEditor(trx, approval.id, call.edit)) !== 'pending') {
    return { kind: 'ask', approvalId: approval.id, expiresInMs: lookAgainMs }
  }
  // Counts the request as the vote of the person whose write this is. Other people are notified if
  // that vote is not enough.
  if (manual && !call.edit) {
    if ((await voteOfRequester(trx, approval.id, manual)) !== 'pending')
      return { kind: 'ask', approvalId: approval.id, expiresInMs: lookAgainMs }
    await announceAsked(trx, approval.id)
  }
  return { kind: 'ask', approvalId: approval.id, expiresInMs: await lookAgainInMs(trx, approval.id) }
}

/** Returns how many people must approve. An admin who acts alone needs what the site demands. */
async function countNeeded(trx: Trx, { manual, ruling, policy }: Asking): Promise<number> {
  const bySite = siteOfRuling(ruling)?.demand?.people ?? 1
  if (await isAlone(trx, manual, ruling)) return bySite
  return Math.max(requiredApprovals[ruling.risk], policy.raised.required, bySite)
}

const siteOfRuling = ({ details }: Ruling) => details.site as SiteDecision | undefined

/**
 * Adds the site's rule to the dry run, because the approval is bound to what the card shows. A rule
 * that a tool added is dropped.
 */
function withSite(dryRun: Preparation['dryRun'], ruling: Ruling): Preparation['dryRun'] {
  const { sitePolicy: _, ...details } = dryRun.details
  const site = siteOfRuling(ruling)
  return { ...dryRun, details: { ...details, ...(site?.demand && { sitePolicy: site }) } }
}

/**
 * Whether one person is enough for a critical write: an admin chose to act alone, and is still
 * allowed to.
 */
async function isAlone(trx: Trx, manual: ManualChange | null | undefined, { risk, targets }: Ruling): Promise<boolean> {
  if (!manual?.alone || !manual.mayVote) return false
  return (await refusalForRisk(trx, manual.operatorId, { risk, incidentType: manualChangeType, targets })) === null
}

/** A later call of the same answer, prepared as if its turn had come. */
export type LaterCall = { place: RuledPlace; call: EffectiveCall; prepared: Call['prepared'] }

/** Most approvals on one card. */
const maxCardCalls = 8

/**
 * Lists the places of the answer's later calls that have no ruling and about which people may be
 * asked.
 */
export function listLaterCalls(events: readonly IncidentEvent[], place: CallRef): number[] {
  const answered = events.find((event) => event.stepKey === stepKey(place, place.turn, 'model_answered', 0))
  if (answered?.kind !== 'model_answered') return []
  return answered.metadata.calls.flatMap(({ tool, arguments: args }, index) => {
    const isLater = index > place.call && args !== null && tools.get(tool)?.prepare !== undefined
    return isLater && rulingsOf(events, place.attempt, callId(place.turn, index)).length === 0 ? [index] : []
  })
}

/**
 * Requests approval of later calls on the first call's card, so that a person is woken once. Each
 * later call is judged as if its turn had come. Only calls that need a person now, and touch no
 * target of another call on the card, are included. In its turn, every later call is judged again
 * by the state at that time. People get one notification, about the first call.
 */
export async function askTogether(
  trx: Trx,
  first: { approvalId: string; ruling: Ruling },
  later: readonly LaterCall[],
  { incident, settings }: Pick<CallToRule, 'incident' | 'settings'>,
): Promise<void> {
  const touched = new Set(first.ruling.targets.map(resourceKey))
  let asked = 1
  for (const { place, call, prepared } of later) {
    if (asked >= maxCardCalls || !prepared?.ok) continue
    const events = await eventsOf(trx, place.incidentId)
    const judged = await judgeCall(trx, { place, call, prepared, incident, settings, events, earlier: [] })
    const { ruling, policy } = judged
    const keys = ruling.targets.map(resourceKey)
    if (ruling.verdict !== 'ask' || ruling.arguments === null || keys.some((key) => touched.has(key))) continue
    if ((await findPending(trx, place.incidentId, call.tool, ruling)) !== null) continue
    if (asked === 1) await markCardLead(trx, first.approvalId)
    await recordRuling(trx, place, call, { ...judged, step: undefined, approvalId: null })
    await askPeople(trx, place, {
      call,
      ruling,
      prepared,
      policy,
      settings,
      lead: first.approvalId,
      isAnnounced: false,
    })
    for (const key of keys) touched.add(key)
    asked += 1
  }
  await announceAsked(trx, first.approvalId)
}

/** Adds how success is proved: by the call's own proof, otherwise by that of its tool. */
function withProof(tool: string, dryRun: Preparation['dryRun']): Preparation['dryRun'] {
  const proof = dryRun.proof ?? tools.get(tool)?.proof
  return proof ? { ...dryRun, proof } : dryRun
}

/** Adds what the undo does, if the tool declares an undo. The dry run of a job already says it. */
function withUndo(tool: string, args: Record<string, unknown>, dryRun: Preparation['dryRun']): Preparation['dryRun'] {
  const undo = tools.get(tool)?.undo?.does(args) ?? null
  return undo === null ? dryRun : { ...dryRun, details: { ...dryRun.details, undo } }
}

/**
 * Returns how many seconds people have to decide. A setting that somebody changed applies. The
 * default is at most the time for which the dry run stays valid.
 */
export function expirySecondsOf(settings: SettingsReader, tool: string): number {
  const { value, source } = settings.effective('approval.expiry', tool)
  const agesAfter = toolFacts.get(tool)?.dryRunAgesAfterSeconds
  return source === 'default' && agesAfter !== undefined ? Math.min(value as number, agesAfter) : (value as number)
}
