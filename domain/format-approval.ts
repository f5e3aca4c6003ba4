import type { Approval, CallRun, NextCall } from './approval.ts'
import type { Attachment } from './attachment.ts'
import type { PostconditionProof, VerificationOutcome } from './envelope.ts'
import { formatCount, formatMinute, withSpaces } from './format.ts'
import { formatAfterwards } from './format-plan.ts'
import type { Standing } from './placement.ts'

/** What each answer leads to, a few sentences each: read before a person decides. The texts hold a stranger's words. */
type Consequences = { approve: string; deny: string; wait: string; after: string | null }

type AskedAction = Pick<
  Approval,
  'tool' | 'targets' | 'dryRun' | 'reversible' | 'required' | 'approvals' | 'expiresAt' | 'askedBy'
>

const namedTargets = 3

/** From what is stored with the approval alone; `moment` writes a time as its reader reads times. */
export function formatConsequences(approval: AskedAction, moment: (iso: string) => string): Consequences {
  return {
    approve: formatApprovalEffect(approval),
    deny: `${formatDenial(approval)}${approval.askedBy ? '' : ' It cannot ask for this action again.'}`,
    wait: `Nothing is changed. The question expires at ${moment(approval.expiresAt)}, and the incident is escalated.`,
    after: afterOf(approval),
  }
}

/** The same in a sentence each, for the first screen of an incident; the card says more. */
export function formatShortConsequences(approval: AskedAction, moment: (iso: string) => string): Consequences {
  const { required, approvals, reversible, dryRun } = approval
  const missing = required - approvals - 1
  const when =
    missing > 0
      ? `It runs once ${missing === 1 ? 'another person approves' : `${missing} more people approve`}`
      : 'It runs at once'
  const proof =
    dryRun.proof?.by === 'state' ? 'then code checks whether it worked' : 'and nothing proves afterwards that it worked'
  return {
    approve: `${when}, ${proof}. ${reversible ? 'It can be reversed.' : 'It cannot be undone.'}`,
    deny: formatDenial(approval),
    wait: `Nothing is changed. At ${moment(approval.expiresAt)} it is escalated.`,
    after: afterOf(approval),
  }
}

/** The worst that is known of approving, in a sentence or a few: it stands beside the buttons, so that nobody has to look for it. */
export function formatCost(approval: Pick<Approval, 'dryRun' | 'reversible'>): string {
  const { dryRun, reversible } = approval
  const known = [
    reversible ? null : 'It cannot be undone.',
    dryRun.possible ? null : withoutDryRun,
    afterOf(approval),
    dryRun.proof?.by === 'nothing' ? 'Afterwards nothing proves that it worked.' : null,
  ].filter((each) => each !== null)
  return known.join(' ') || 'No cost of it is known, and it can be reversed.'
}

/** What its plan costs afterwards; null where it has none, or costs nothing. */
function afterOf({ dryRun: { details } }: Pick<Approval, 'dryRun'>): string | null {
  const { standing } = details as { standing?: Standing | null }
  const after = standing && Array.isArray(standing.after) ? formatAfterwards(standing) : null
  return after && `${after[0]?.toUpperCase()}${after.slice(1)}.`
}

/** A person's own write ends with the denial; the agent goes on. */
function formatDenial({ askedBy }: Pick<Approval, 'askedBy'>): string {
  return askedBy
    ? `Nothing is changed, and the incident ends. Its log has your reason, for ${askedBy} to read.`
    : 'Nothing is changed. The agent reads your reason and looks for another way, or escalates.'
}

/** Why it is asked, and by whom where that is a person. */
export function formatReason({ reason, askedBy }: Pick<Approval, 'reason' | 'askedBy'>): string {
  return askedBy ? `${askedBy} asks for it: ${reason}` : reason.trim() || 'The agent gave no reason.'
}

/** The same by the question that each answers, in the order in which a card asks them. */
export const listAnswers = ({ approve, deny, wait, after }: Consequences): [question: string, answer: string][] => [
  ['If you approve', approve],
  ...(after === null ? [] : [['After that', after] as [string, string]]),
  ['If you deny', deny],
  ['If you do nothing', wait],
]

/** The sections of a card, as its two pages head them. */
export const cardTitles = {
  cost: 'The worst it costs',
  targets: 'On what',
  against: 'What speaks against it',
  back: 'The way back',
  running: 'What it does',
  ran: 'What it did',
  reason: 'Why',
  proof: 'What will prove it',
  dryRun: 'Dry run',
  arguments: 'Exact arguments',
  next: 'What the same answer asks next',
}

/** Beside the risk, wherever somebody is asked. */
export const formatReversible = (reversible: boolean): string => (reversible ? 'reversible' : 'cannot be undone')

function formatApprovalEffect(approval: AskedAction): string {
  const { dryRun, reversible } = approval
  const after = [dryRun.possible ? '' : withoutDryRun, formatProofAfter(dryRun.proof), formatWayBack(reversible)]
  return [formatStart(approval), ...after].filter(Boolean).join(' ')
}

const withoutDryRun = 'It had no dry run: what it will do is not known beforehand.'

export const formatWayBack = (reversible: boolean): string =>
  reversible ? 'It can be reversed.' : 'It cannot be undone.'

/** When and how it begins, once it is approved. */
export function formatStart({ tool, targets, required, approvals }: AskedAction): string {
  const others = required - approvals - 1
  const when = others > 0 ? `Once ${others === 1 ? 'another person approves' : `${others} more approve`}, the` : 'The'
  return `${when} targets are read again. If they are unchanged, ${tool} runs at once${formatTargets(targets)}; otherwise you are asked again.`
}

function formatProofAfter(proof: AskedAction['dryRun']['proof']): string {
  if (!proof) return 'Look at its targets afterwards: what proves it was not stored.'
  return proof.by === 'state'
    ? 'Afterwards code checks whether it worked.'
    : 'Afterwards nothing proves that it worked.'
}

function formatTargets(targets: AskedAction['targets']): string {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  if (named.length === 0) return ''
  const shown = named.slice(0, namedTargets).map(({ kind, id }) => `${kind} ${id}`)
  const more = named.length - shown.length
  return ` on ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** What became of the platform by an approval that is over; null while it waits, and where the incident's log has to say it. */
export function formatApprovalEnd({ status }: Pick<Approval, 'status'>): string | null {
  switch (status) {
    case 'expired':
      return 'Expired: nobody decided in time, and nothing was changed.'
    case 'denied':
      return 'Denied: nothing was changed.'
    case 'withdrawn':
      return 'Withdrawn: by this approval nothing was changed.'
    case 'approved':
      return 'Approved: it has not started yet.'
    case 'consumed':
      return 'Approved and started: the incident shows what it did.'
    default:
      return null
  }
}

/** ` and 2 more calls of the same answer`; nothing for none. */
export function formatAlsoAsked(count = 0): string {
  return count === 0 ? '' : ` and ${count === 1 ? '1 more call' : `${count} more calls`} of the same answer`
}

const verdictWords: Record<NonNullable<NextCall['verdict']>, string> = {
  run: 'runs without asking',
  ask: 'needs its own approval',
  refuse: 'would be refused as things stand now',
}

/** `converge shard on web-2 (medium risk): needs its own approval`. */
export function formatNextCall({ tool, about, risk, verdict }: NextCall): string {
  return `${withSpaces(tool)}${about ? ` on ${about}` : ''} (${risk} risk): ${verdict ? verdictWords[verdict] : 'could not be judged now'}`
}

/** How an approved call stands, in a sentence. */
export function formatRunOutcome({ outcome, verification }: CallRun): string {
  if (outcome === 'running') return 'It runs now.'
  if (outcome === 'failed') return 'It failed.'
  if (outcome === 'indeterminate') return 'It is unknown whether it took effect.'
  switch (verification?.outcome) {
    case 'held':
      return 'It ran, and code verified it.'
    case 'not_held':
      return 'It ran, but its verification failed.'
    case 'unproven':
      return 'It ran; nothing proves that it worked.'
    default:
      return 'It ran; it is not verified yet.'
  }
}

/** Is an argument to be read word by word, as a command is? Others are names and numbers, and the title says what they do. */
export function isReadExactly({ arguments: args, dryRun }: Pick<Approval, 'arguments' | 'dryRun'>): boolean {
  return !dryRun.possible || Object.entries(args).some(([name, value]) => name !== 'reason' && hasWords(value))
}

function hasWords(value: unknown): boolean {
  if (typeof value === 'string') return /\s/.test(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(hasWords)
}

const doors: Record<string, string> = {
  api: 'API',
  cli: 'CLI',
  page: 'page',
  slack: 'Slack',
  signal: 'Temporal',
  update: 'Temporal',
  edit: 'an edit',
}

/** What became of an approval so far, in sentences: who decided, when, by which door. Empty while nobody has said anything. */
export function listDecisions(approval: Approval): string[] {
  const said = approval.decisions.map(({ operator, decision, category, reason, via, at }) => {
    const why = decision === 'deny' ? ` (${withSpaces(category ?? 'other')}: ${reason ?? ''})` : ''
    return `${decision === 'approve' ? 'Approved' : 'Denied'} by ${operator}, ${formatMinute(at)}, by ${doors[via] ?? via}${why}`
  })
  if (approval.status === 'expired') said.push(`Expired: nobody decided by ${formatMinute(approval.expiresAt)}`)
  if (approval.status === 'withdrawn') {
    said.push(approval.edited ? `Withdrawn: ${approval.edited.by} changed the arguments` : 'Withdrawn: asked no more')
  }
  if (approval.status === 'pending' && said.length > 0) {
    said.push(`${approval.approvals} of ${approval.required} have agreed`)
  }
  return said
}

/** A rehearsal as a person reads it: facts and output line by line, then a sentence for each thing that was not tried. */
export type Rehearsal = { lines: string[]; untried: string[] }

type Fields = Record<string, unknown>

/**
 * What a device answered to a rehearsal: a diff and checks of what was tried in a copy, or facts one a line. Null for a dry run that holds
 * no rehearsal of a device, and for one that is not understood: it is shown as it is. Read by hand, for the page carries no schemas.
 */
export function parseRehearsal({ rehearsal, notRehearsed }: Fields): Rehearsal | null {
  if (rehearsal === undefined && notRehearsed === undefined) return null
  if (notRehearsed !== undefined && typeof notRehearsed !== 'string') return null
  if (rehearsal !== undefined && !isFields(rehearsal)) return null
  const { diff, checks = [], would_change, told = [], untried = [], truncated } = rehearsal ?? {}
  if (!isText(diff) || !isTruth(would_change) || !isTruth(truncated) || !isTexts(told) || !isTexts(untried)) return null
  if (!Array.isArray(checks) || !checks.every(isCheck)) return null
  const lines = [
    ...told,
    ...(would_change === false ? ['Tried in a copy: it would change nothing.'] : []),
    ...(diff ? diff.replace(/\n$/, '').split('\n') : []),
    ...checks.flatMap(({ argv, exit_code, output }) => [
      `check ${argv.join(' ')} ended with ${exit_code ?? 'a signal'}`,
      ...output
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => `  ${line}`),
    ]),
    ...(truncated ? ['This is not all of it.'] : []),
  ]
  const why = notRehearsed === undefined ? [] : [`Not rehearsed: ${notRehearsed}`]
  return { lines, untried: [...why, ...untried] }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string'
const isTruth = (value: unknown): value is boolean | undefined => value === undefined || typeof value === 'boolean'
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

type Check = { argv: string[]; exit_code: number | null; output: string }
const isCheck = (value: unknown): value is Check =>
  isFields(value) &&
  isTexts(value.argv) &&
  (value.exit_code === null || typeof value.exit_code === 'number') &&
  typeof value.output === 'string'

const outcomeWords: Record<VerificationOutcome, string> = {
  held: 'Verified',
  not_held: 'Verification failed',
  open: 'Could not be read',
  unproven: 'Unproven',
}

/** The outcome for people; a word that another version wrote stands as it is. */
export function formatVerification(outcome: string): string {
  return outcomeWords[outcome as VerificationOutcome] ?? withSpaces(outcome)
}

/** `812 bytes`, `24 kB`, `1.2 MB`. */
export function formatSize(bytes: number): string {
  if (bytes < 1_000) return formatCount(bytes, 'byte')
  return bytes < 999_500 ? `${Math.round(bytes / 1_000)} kB` : `${Math.round(bytes / 100_000) / 10} MB`
}

/** `PNG, 640 x 360 px, 24 kB`; `text, 120 lines, 6 kB`. */
export function formatAttachment({ kind, bytes, width, height, lines }: Attachment): string {
  const size = formatSize(bytes)
  if (kind === 'png') return `PNG, ${width} x ${height} px, ${size}`
  return `text, ${formatCount(lines ?? 0, 'line')}, ${size}`
}

/** Where the API answers its bytes. */
export function pathOfAttachment(approvalId: string, { digest }: Pick<Attachment, 'digest'>): string {
  return `/api/v1/approvals/${encodeURIComponent(approvalId)}/attachments/${digest}`
}

/** For the card of an approval, before anybody decides. Absent: the approval was stored by a version that did not say. */
export function formatProof(proof: PostconditionProof | undefined): string {
  if (!proof)
    return 'What will prove that this worked was not stored with this approval: look at its target afterwards.'
  if (proof.by === 'state') return `Code will prove whether this worked: ${proof.text}.`
  return `Nothing will prove that this worked: ${proof.text}.`
}

/** Somebody approved at Temporal without a token: what to do instead. */
export function formatUnheard(at: string): string {
  return `Somebody approved this at Temporal without a decision token (${at}). That decides nothing: decide here, or sign with "nightshift approvals token ID approve".`
}
