import { runningStatuses } from '../../domain/incident.ts'
import type { Db, Trx } from '../connect.ts'
import { eventsOf, verifyChain } from '../events.ts'
import type { IncidentRow } from '../tables.ts'
import { effectFlaws } from './effects.ts'
import { type FoldedApproval, foldApprovals, foldIncident } from './fold.ts'

/** Something that the rows of the log do not say: which thing, and what of it. */
export type Difference = { subject: string; what: string }

/**
 * Holds an incident against its own log: the chain of its rows, then its row, its approvals and its effects as they are stored
 * against what the rows fold to. One snapshot, so that what is written meanwhile is no difference.
 */
export async function verifyIncident(db: Db, id: string): Promise<{ events: number; found: Difference[] }> {
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const row = await trx.selectFrom('incident').selectAll().where('id', '=', id).executeTakeFirst()
      const chain = await verifyChain(trx, id)
      if (!row || !chain) return { events: 0, found: [{ subject: id, what: 'the incident is missing' }] }
      const { problem } = chain
      const found: Difference[] = problem ? [{ subject: id, what: `row ${problem.seq}: ${problem.what}` }] : []
      const events = await eventsOf(trx, id)
      const approvals = foldApprovals(events)
      for (const what of incidentFlaws(row, foldIncident(events), approvals.size > 0)) found.push({ subject: id, what })
      found.push(...(await approvalFlaws(trx, id, approvals)), ...(await effectFlaws(trx, id, events)))
      return { events: chain.events, found }
    })
}

function incidentFlaws(row: IncidentRow, folded: ReturnType<typeof foldIncident>, hasAsked: boolean): string[] {
  const found: string[] = []
  const fits =
    folded.status === 'running' ? (runningStatuses as string[]).includes(row.status) : row.status === folded.status
  if (!fits) found.push(differs('status', row.status, folded.status === 'running' ? 'investigating' : folded.status))
  if (row.status === 'awaiting_approval' && !hasAsked)
    found.push('status is awaiting_approval, but no row asks for an approval')
  if (row.attempt !== folded.attempt) found.push(differs('attempt', row.attempt, folded.attempt))
  for (const field of ['resolution', 'outcome', 'category'] as const) {
    const said = folded[field]
    // Version 0.1.0 wrote down no outcome, and not who closed it either.
    if (field !== 'resolution' && row[field] === null && row.closedBy === null) continue
    if (fits && said !== undefined && row[field] !== said) found.push(differs(field, row[field], said))
  }
  return found
}

async function approvalFlaws(trx: Trx, id: string, folded: Map<string, FoldedApproval>): Promise<Difference[]> {
  const stored = await trx.selectFrom('approval').selectAll().where('incidentId', '=', id).orderBy('id').execute()
  const votes = await trx
    .selectFrom('approvalDecision')
    .innerJoin('approval', 'approval.id', 'approvalDecision.approvalId')
    .select(['approvalId', 'decision', 'via'])
    .where('approval.incidentId', '=', id)
    .execute()
  const found: Difference[] = []
  for (const row of stored) {
    const said = folded.get(row.id)
    if (!said) {
      found.push({ subject: row.id, what: 'no row asks for this approval' })
      continue
    }
    for (const field of ['status', 'callId', 'tool', 'actionDigest', 'risk', 'required'] as const) {
      if (row[field] !== said[field]) found.push({ subject: row.id, what: differs(field, row[field], said[field]) })
    }
    const counted = votes
      .filter(({ approvalId }) => approvalId === row.id)
      .map(({ decision, via }) => `${decision} ${via}`)
    const [has, should] = [counted, said.decisions].map((list) => [...list].sort().join(', ') || 'none')
    if (has !== should) found.push({ subject: row.id, what: differs('decisions', has, should) })
  }
  for (const asked of folded.keys()) {
    if (!stored.some((row) => row.id === asked)) found.push({ subject: asked, what: 'it was asked for and is missing' })
  }
  return found
}

export function differs(field: string, stored: unknown, said: unknown): string {
  const shown = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value)).slice(0, 120)
  return `${field} is ${shown(stored)}, the rows say ${shown(said)}`
}
