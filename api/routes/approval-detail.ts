import { approversOf } from '../../db/approvals/approvers.ts'
import { evidenceOf } from '../../db/approvals/evidence.ts'
import { listApprovals, neighbours } from '../../db/approvals/find.ts'
import { listAsked } from '../../db/approvals/on-call.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { type AskedWitnesses, deathsOfApproval, openStarts, suspectsOf } from '../../db/inventory/deaths.ts'
import { eventsOf } from '../../db/log/events.ts'
import { type Scope, systemScope } from '../../db/scope.ts'
import type { Approval, ApprovalDetail, NextCall } from '../../domain/approval.ts'
import { foldCallRun } from '../../domain/done.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatList } from '../../domain/format.ts'
import { deathsOfDryRun } from '../../domain/format-death.ts'
import { foldHypotheses } from '../../domain/hypothesis.ts'
import { planOfDryRun } from '../../domain/placement.ts'
import { nameResource } from '../../domain/registry.ts'
import { byCall } from '../../domain/step-key.ts'
import { isGrantable } from '../../safety/write.ts'
import { describeTool, toolFacts, tools } from '../../tools/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { Problem } from '../http/problem.ts'
import { dryRunJudge } from './judge.ts'

/** Reads an approval with all that its card shows, on the page with or without JavaScript. */
export async function readDetail(deps: ApiDeps, scope: Scope, found: Approval): Promise<ApprovalDetail> {
  const isPending = found.status === 'pending'
  const [evidence, incident, around, log, together, approvers, turns, deaths] = await Promise.all([
    evidenceOf(scope, found),
    incidentById(deps.db, found.incidentId),
    neighbours(scope, found),
    eventsOf(deps.db, found.incidentId, { attempt: found.attempt }),
    listTogether(scope, found),
    isPending ? approversOf(scope, found) : [],
    listAsked(scope, found.id),
    isPending ? askAgain(deps, found).then((asked) => deathsOfApproval(deps.db, found, asked)) : [],
  ])
  const tool = tools.get(found.tool)
  return {
    ...found,
    ...around,
    evidence,
    about: incident?.resource ?? null,
    hypotheses: foldHypotheses(log, found.attempt),
    grantRefused: refusalToGrant(found),
    run: foldCallRun(log, found),
    together,
    approvers,
    asked: turns,
    deaths,
    next: isPending ? await previewNextCalls(deps, found, log) : [],
    unheardAt: unheardAtOf(log, found),
    schema: tool ? describeTool(tool).inputSchema : null,
  }
}

/** Queries the witnesses for the approval with this id, which may not exist. */
export async function askForDecision(deps: ApiDeps, id: string): Promise<AskedWitnesses> {
  const [found] = await listApprovals(systemScope(deps.db), { id }, { before: null, limit: 1 })
  return found ? await askAgain(deps, found) : new Map()
}

/** Queries monitoring about the hosts that count as dead in an approval's plan. */
async function askAgain(
  { db, askMonitoring }: Pick<ApiDeps, 'db' | 'askMonitoring'>,
  { dryRun }: Pick<Approval, 'dryRun'>,
): Promise<AskedWitnesses> {
  const hosts = deathsOfDryRun(dryRun.details).map(({ host }) => host)
  if (hosts.length === 0) return new Map()
  const starts = await openStarts(db, planOfDryRun(dryRun.details)?.steps ?? [])
  const suspects = suspectsOf(starts).filter(({ host }) => hosts.includes(host))
  return askMonitoring && suspects.length > 0 ? await askMonitoring(suspects) : new Map()
}

function unheardAtOf(log: readonly IncidentEvent[], { requestedAt }: Approval): string | null {
  const unheard = log.findLast(
    (event) => event.kind === 'security_event' && event.metadata.code === 'BARE_APPROVAL' && event.at >= requestedAt,
  )
  return unheard?.at ?? null
}

/** Lists the newest approval of each other call on this card, in the order of the calls. */
async function listTogether(scope: Scope, { askedWith, callId }: Approval): Promise<Approval[]> {
  if (askedWith === null) return []
  const newestFirst = await listApprovals(scope, { askedWith }, { before: null, limit: 100 })
  const newest = new Map(newestFirst.toReversed().map((each) => [each.callId, each]))
  newest.delete(callId)
  return [...newest.values()].sort(byCall)
}

/**
 * Lists later writes of the model response that were not yet requested, with the policy decisions
 * that they would get now.
 */
async function previewNextCalls(deps: ApiDeps, found: Approval, log: readonly IncidentEvent[]): Promise<NextCall[]> {
  const answer = log.findLast(
    (event) => event.kind === 'model_answered' && event.metadata.calls.some(({ id }) => id === found.callId),
  ) as IncidentEvent<'model_answered'> | undefined
  const calls = answer?.metadata.calls ?? []
  const asked = new Set(log.flatMap((event) => (event.kind === 'approval_requested' ? [event.metadata.callId] : [])))
  const behind = calls.slice(calls.findIndex(({ id }) => id === found.callId) + 1)
  const later = behind.filter(({ id }) => !asked.has(id))
  const incident = later.length > 0 ? await incidentById(deps.db, found.incidentId) : null
  if (!incident) return []
  const supposed: NextCall[] = []
  for (const { id, tool, arguments: args } of later) {
    if (args === null) continue
    const ruling = await orTooMuch(dryRunJudge(deps, incident, { tool, args, callId: id }))
    if (ruling === null) {
      const facts = toolFacts.get(tool)
      if (facts && facts.effect !== 'read')
        supposed.push({ callId: id, tool, about: '', verdict: null, risk: facts.risk })
      continue
    }
    if (!('targets' in ruling) || ruling.effect !== 'write') continue
    const { verdict, risk, targets } = ruling
    supposed.push({ callId: id, tool, about: formatList(targets.map(nameResource)), verdict, risk })
  }
  return supposed
}

/** Returns null if a judgement takes too long, because a card must open in any case. */
async function orTooMuch<T>(judged: Promise<T>): Promise<T | null> {
  try {
    return await judged
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return null
  }
}

/**
 * Returns why an approval cannot become a grant. An approval can become a grant only if its tool is
 * marked as grantable, has low or medium risk and needs one approver. Every other call needs
 * approval each time.
 */
export function refusalToGrant({ tool, risk, required }: Approval): string | null {
  const facts = toolFacts.get(tool)
  if (!facts?.grantable) return `${tool} cannot get a standing grant: each call needs approval.`
  if (!isGrantable({ ...facts, risk }))
    return `${tool} at ${risk} risk cannot get a standing grant: each call needs approval.`
  return required > 1 ? 'An action that two people must approve cannot get a standing grant.' : null
}
