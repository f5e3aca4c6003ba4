import { isDeepStrictEqual } from 'node:util'
import type { IncidentEvent } from '../../domain/event.ts'
import { shownDigest } from '../approvals/ask.ts'
import type { Trx } from '../connect.ts'
import type { ApprovalRow } from '../tables.ts'
import { differs, type Notes } from './findings.ts'

/** A vote by its log row. `at` and `operatorId` are undefined in rows of 0.2 and before. */
type SaidVote = {
  name: string
  decision: string
  reason: string | null
  category: string | null | undefined
  via: string
  operatorId: string | undefined
  at: string | undefined
  askAgainAt: string | null
}

type SaidApproval = {
  status: string
  callId: string
  tool: string
  attempt: number
  actionDigest: string
  risk: string
  required: number
  expiresAt: string
  decidedAt: string | null | undefined
  useBy: string | null | undefined
  edited: unknown
  /** The id of the person who changed the arguments. Undefined in rows up to 0.2. */
  editedBy: string | null | undefined
  /** The digests of the attachments of the approval's dry run. */
  attachments: string
  shown: string | undefined
  votes: SaidVote[]
}

const joinDigests = (attachments: readonly { digest: string }[] = []) =>
  attachments.map(({ digest }) => digest).join(' ')

/** Computes what the rows of an incident contain about each approval, by the approval's id. */
export function foldApprovals(events: readonly IncidentEvent[]): Map<string, SaidApproval> {
  const approvals = new Map<string, SaidApproval>()
  const settle = (id: string | null, change: Partial<SaidApproval>) => {
    const approval = id === null ? undefined : approvals.get(id)
    if (approval) Object.assign(approval, change)
  }
  for (const event of events) {
    switch (event.kind) {
      case 'approval_requested':
        approvals.set(event.metadata.approvalId, asked(event))
        break
      case 'approval_decided': {
        const { approvalId, status, decidedAt, useBy } = event.metadata
        approvals.get(approvalId)?.votes.push(voteOf(event))
        settle(approvalId, { status, decidedAt, useBy })
        break
      }
      case 'approval_expired':
        settle(event.metadata.approvalId, { status: 'expired', decidedAt: event.metadata.decidedAt })
        break
      case 'approval_withdrawn': {
        const { approvalId, decidedAt, edited = null, operatorId } = event.metadata
        const editedBy = edited === null ? null : operatorId
        settle(approvalId, { status: 'withdrawn', decidedAt, edited, editedBy })
        break
      }
      case 'noted':
        if (event.metadata.code === 'approval_extended') extend(event.metadata, settle)
        break
      case 'tool_started':
        settle(event.metadata.approvalId, { status: 'consumed' })
        break
      default:
    }
  }
  return approvals
}

function asked({ attempt, metadata }: IncidentEvent<'approval_requested'>): SaidApproval {
  const { callId, tool, actionDigest, risk, required, expiresAt, attachments, shown } = metadata
  return {
    ...{ status: 'pending', callId, tool, attempt, actionDigest, risk, required, expiresAt, shown },
    ...{ decidedAt: null, useBy: null, edited: null, editedBy: null },
    attachments: joinDigests(attachments),
    votes: [],
  }
}

const nameOf = (actor: string) => actor.replace(/^user:/, '')

function voteOf({ actor, metadata }: IncidentEvent<'approval_decided'>): SaidVote {
  const { decision, reason, category, via, operatorId, at, askAgainAt = null } = metadata
  return { name: nameOf(actor), decision, reason, category, via, operatorId, at, askAgainAt }
}

/** Applies an extension. In rows of 0.2 the approval and its end are only in the sentence. */
function extend(
  { text, ...said }: IncidentEvent<'noted'>['metadata'],
  settle: (id: string, change: Partial<SaidApproval>) => void,
): void {
  const [, id, until] = /(apr_\S+) more time: until (\S+)$/.exec(text) ?? []
  const [approvalId, expiresAt] = [said.approvalId ?? id, said.expiresAt ?? until]
  if (approvalId && expiresAt) settle(approvalId, { expiresAt })
}

/**
 * Compares the approvals of an incident with its log: what people saw, until when, who decided, how
 * and why.
 */
export async function verifyApprovals(
  trx: Trx,
  incidentId: string,
  said: Map<string, SaidApproval>,
  notes: Notes,
): Promise<void> {
  const stored = await trx
    .selectFrom('approval')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .orderBy('id')
    .execute()
  const votes = await votesOf(trx, incidentId)
  for (const row of stored) {
    notes.check('approvals')
    const told = said.get(row.id)
    if (told) holdApproval(row, told, notes)
    else notes.differ(row.id, 'no row requests this approval')
    holdVotes(
      row.id,
      votes.filter(({ approvalId }) => approvalId === row.id),
      told?.votes ?? [],
      notes,
    )
  }
  for (const id of said.keys()) {
    if (!stored.some((row) => row.id === id)) notes.differ(id, 'the approval was requested and is missing')
  }
}

type StoredVote = Awaited<ReturnType<typeof votesOf>>[number]

async function votesOf(trx: Trx, incidentId: string) {
  return await trx
    .selectFrom('approvalDecision')
    .innerJoin('approval', 'approval.id', 'approvalDecision.approvalId')
    .leftJoin('operator', 'operator.id', 'approvalDecision.operatorId')
    .select([
      'approvalId',
      'operatorId',
      'operator.name',
      'decision',
      'approvalDecision.reason',
      'category',
      'via',
      'at',
      'askAgainAt',
    ])
    .where('approval.incidentId', '=', incidentId)
    .orderBy('at')
    .execute()
}

function holdApproval(row: ApprovalRow, told: SaidApproval, notes: Notes): void {
  const differ = (field: string, stored: unknown, said: unknown) => notes.differ(row.id, differs(field, stored, said))
  for (const field of ['status', 'callId', 'tool', 'attempt', 'actionDigest', 'risk', 'required', 'expiresAt'] as const)
    if (row[field] !== told[field]) differ(field, row[field], told[field])
  let isTold = told.shown !== undefined
  for (const field of ['decidedAt', 'useBy', 'editedBy'] as const) {
    if (told[field] === undefined) isTold = false
    else if (row[field] !== told[field]) differ(field, row[field], told[field])
  }
  const brought = joinDigests(row.dryRun.attachments)
  if (brought !== told.attachments) differ('attachments', brought, told.attachments)
  if (!isDeepStrictEqual(row.edited, told.edited)) differ('edited', row.edited, told.edited)
  if (!isTold) notes.leave('approvals')
  if (told.shown !== undefined && shownDigest(row) !== told.shown)
    notes.differ(row.id, 'its content (dry run, arguments, targets, state, reason or time) differs from what was shown')
}

/**
 * Compares the votes on an approval. A vote from before 0.3 is identified by name, words and
 * origin; a newer vote also by person and time.
 */
function holdVotes(approvalId: string, stored: readonly StoredVote[], said: readonly SaidVote[], notes: Notes): void {
  notes.check('votes', stored.length)
  const left = [...said]
  const strange: StoredVote[] = []
  for (const vote of stored) {
    const place = left.findIndex((told) => isSameVote(vote, told))
    if (place < 0) strange.push(vote)
    else if (left.splice(place, 1)[0]?.at === undefined) notes.leave('votes')
  }
  if (strange.length === 0 && left.length === 0) return
  notes.differ(approvalId, differs('decisions', inWords(strange), inWords(left)))
}

function isSameVote(vote: StoredVote, told: SaidVote): boolean {
  return (
    vote.name === told.name &&
    vote.decision === told.decision &&
    vote.reason === told.reason &&
    vote.via === told.via &&
    (told.category === undefined || vote.category === told.category) &&
    (told.operatorId === undefined || vote.operatorId === told.operatorId) &&
    (told.at === undefined || vote.at === told.at) &&
    toTime(vote.askAgainAt) === toTime(told.askAgainAt)
  )
}

/** Converts a time to milliseconds, because rows write one time in several ways. */
const toTime = (at: string | null) => at && Date.parse(at)

function inWords(votes: readonly (StoredVote | SaidVote)[]): string {
  return (
    votes
      .map(({ decision, via, name, reason, category, at, askAgainAt }) =>
        [`${decision} ${via} by ${name}`, category, reason, at, askAgainAt].filter(Boolean).join(', '),
      )
      .sort()
      .join('; ') || 'none'
  )
}
