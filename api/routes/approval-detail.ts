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

/** An approval with everything that its card shows, on the page and without JavaScript. */
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

/** The same for the approval of this id, which may be none. */
export async function askForDecision(deps: ApiDeps, id: string): Promise<AskedWitnesses> {
  const [found] = await listApprovals(systemScope(deps.db), { id }, { before: null, limit: 1 })
  return found ? await askAgain(deps, found) : new Map()
}

/** What monitoring says now of the hosts that an approval's plan takes for dead. */
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

/** The newest approval of each other call on its card, in the order of the calls. */
async function listTogether(scope: Scope, { askedWith, callId }: Approval): Promise<Approval[]> {
  if (askedWith === null) return []
  const newestFirst = await listApprovals(scope, { askedWith }, { before: null, limit: 100 })
  const newest = new Map(newestFirst.toReversed().map((each) => [each.callId, each]))
  newest.delete(callId)
  return [...newest.values()].sort(byCall)
}

/** Later writes of the agent's answer that nobody is asked about, with the judge's word of now. */
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

/** Null where judging takes too much: a card opens whatever stands behind it in the answer. */
async function orTooMuch<T>(judged: Promise<T>): Promise<T | null> {
  try {
    return await judged
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return null
  }
}

/** Only marked tools of low and medium risk for one decider: all else is asked every time. */
export function refusalToGrant({ tool, risk, required }: Approval): string | null {
  const facts = toolFacts.get(tool)
  if (!facts?.grantable) return `${tool} is not one of the tools that may be granted: it is asked about every time.`
  if (!isGrantable({ ...facts, risk })) return `${tool} at ${risk} risk is asked about every time.`
  return required > 1 ? 'What two people must agree on is asked about every time.' : null
}
