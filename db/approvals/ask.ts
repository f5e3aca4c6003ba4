import { sql } from 'kysely'
import { cardSections, newestLookOf } from '../../domain/card-sections.ts'
import { digestOf, newId } from '../../domain/digest.ts'
import { formatMinute } from '../../domain/format.ts'
import type { AskedApproval } from '../../domain/notification.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Preparation, Risk } from '../../domain/tool.ts'
import { cleanse } from '../../safety/redact.ts'
import type { OperatorRow } from '../access/operators.ts'
import type { Trx } from '../connect.ts'
import { incidentById } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { systemScope } from '../scope.ts'
import type { ApprovalRow } from '../tables.ts'
import { causeOf, evidenceOf } from './evidence.ts'
import { listApprovals } from './find.ts'
import { askFirst } from './on-call.ts'

type ApprovalRequest = {
  incidentId: string
  attempt: number
  turn: number
  callId: string
  tool: string
  args: Record<string, unknown>
  targets: ResourceRef[]
  reason: string
  actionDigest: string
  stateFingerprint: string
  risk: Risk
  reversible: boolean
  required: number
  dryRun: Preparation['dryRun']
  expirySeconds: number
  stepKey: string
  replaces: string | null
  /** The first approval of the shared card. Absent if the card has one approval. */
  askedWith?: string | null
  /**
   * False for a call that runs after another call of the card. People are then notified when its
   * turn comes, if it still waits.
   */
  isAnnounced?: boolean
  actor: string
}

/** Stores the approval, its log row and the status of the incident, in the caller's transaction. */
export async function requestApproval(trx: Trx, request: ApprovalRequest): Promise<{ id: string; expiresAt: string }> {
  const row = await trx
    .insertInto('approval')
    .values({
      id: newId('apr'),
      incidentId: request.incidentId,
      attempt: request.attempt,
      callId: request.callId,
      tool: request.tool,
      args: JSON.stringify(request.args),
      targets: JSON.stringify(request.targets),
      reason: cleanse(request.reason),
      actionDigest: request.actionDigest,
      stateFingerprint: request.stateFingerprint,
      risk: request.risk,
      reversible: request.reversible,
      required: request.required,
      dryRun: JSON.stringify(cleanse(request.dryRun)),
      askedWith: request.askedWith ?? null,
      announced: request.isAnnounced ?? true,
      expiresAt: sql`nightshift_now() + make_interval(secs => ${request.expirySeconds})`,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  const { id, expiresAt } = row
  await trx
    .updateTable('incident')
    .set({ status: 'awaiting_approval' })
    .where('id', '=', request.incidentId)
    .where('status', '=', 'investigating')
    .execute()
  await append(trx, request.incidentId, request.attempt, {
    kind: 'approval_requested',
    actor: request.actor,
    turn: request.turn,
    stepKey: request.stepKey,
    detail: `Asked for approval: ${request.dryRun.summary}`,
    metadata: {
      approvalId: id,
      callId: request.callId,
      tool: request.tool,
      actionDigest: request.actionDigest,
      risk: request.risk,
      required: request.required,
      targets: request.targets,
      summary: request.dryRun.summary,
      expiresAt,
      replaces: request.replaces,
      shown: shownDigest(row),
      ...(request.dryRun.attachments && {
        attachments: request.dryRun.attachments.map(({ name, digest }) => ({ name, digest })),
      }),
    },
  })
  if (request.isAnnounced ?? true) await tellAsked(trx, id, 0)
  return { id, expiresAt }
}

/**
 * Computes the digest of what the card shows to a person before the decision, for the log row of
 * the request. Excludes the end of the time to decide, which may be extended.
 */
export function shownDigest(row: ApprovalRow): string {
  const { args, targets, reason, reversible, dryRun, stateFingerprint, attempt, requestedAt } = row
  return digestOf({ args, targets, reason, reversible, dryRun, stateFingerprint, attempt, requestedAt })
}

/**
 * Notifies people about a call that was requested together with earlier calls: once, when its turn
 * comes and it still waits.
 */
export async function announceAsked(trx: Trx, approvalId: string): Promise<void> {
  const announced = await trx
    .updateTable('approval')
    .set({ announced: true })
    .where('id', '=', approvalId)
    .where('status', '=', 'pending')
    .where('announced', '=', false)
    .returning('id')
    .executeTakeFirst()
  if (announced) await tellAsked(trx, approvalId, 0)
}

/** Marks an approval as the first of a shared card. */
export async function markCardLead(trx: Trx, approvalId: string): Promise<void> {
  await trx.updateTable('approval').set({ askedWith: approvalId }).where('id', '=', approvalId).execute()
}

/** Puts the question about an approval, or a reminder of the question, into the outbox. */
export async function tellAsked(
  trx: Trx,
  approvalId: string,
  reminder: AskedApproval['reminder'],
  passedTo: OperatorRow | null = null,
): Promise<void> {
  const row = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
  const incident = await trx
    .selectFrom('incident')
    .selectAll()
    .where('id', '=', row.incidentId)
    .executeTakeFirstOrThrow()
  const cause = await causeOf(systemScope(trx), row)
  const person = passedTo ?? (reminder === 0 ? await askFirst(trx, row, incident) : null)
  await enqueueNotification(trx, incident, 'approval', row.reason || null, {
    asked: { ...row, of: person?.id },
    approval: {
      id: row.id,
      tool: row.tool,
      risk: row.risk as Risk,
      reversible: row.reversible,
      summary: row.dryRun.summary,
      required: row.required,
      expiresAt: row.expiresAt,
      reminder,
      of: person && { name: person.name, slackUserId: person.slackUserId },
      cause,
      sections: await writeSections(trx, approvalId, cause),
      alsoAsked: await countAskedWith(trx, row),
    },
  })
}

/** Renders the sections of the card for a message. */
async function writeSections(trx: Trx, id: string, cause: string | null): Promise<AskedApproval['sections']> {
  const scope = systemScope(trx)
  const [asked] = await listApprovals(scope, { id }, { before: null, limit: 1 })
  if (!asked) return undefined
  const [incident, evidence] = [await incidentById(trx, asked.incidentId), await evidenceOf(scope, asked)]
  const sections = cardSections(asked, {
    ...{ isOpen: true, moment: formatMinute, cause },
    ...{ about: incident?.resource, lookedAt: newestLookOf(evidence) },
  })
  return sections.map(({ title, sentences }) => ({ title, text: sentences.join(' ') }))
}

/** Counts all other pending questions on the card of this approval. */
async function countAskedWith(trx: Trx, { id, askedWith }: Pick<ApprovalRow, 'id' | 'askedWith'>): Promise<number> {
  if (askedWith === null) return 0
  const { count } = await trx
    .selectFrom('approval')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('askedWith', '=', askedWith)
    .where('status', '=', 'pending')
    .where('id', '!=', id)
    .executeTakeFirstOrThrow()
  return Number(count)
}
