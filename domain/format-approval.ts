import type { Approval, CallRun, NextCall } from './approval.ts'
import type { Attachment } from './attachment.ts'
import type { VerificationOutcome } from './envelope.ts'
import { formatCount, formatMinute, withSpaces } from './format.ts'

/** A yes within so many seconds of the question is counted: perhaps nobody read what was asked. */
export const hastySeconds = 5

/** Beside the risk, wherever somebody is asked. */
export const formatReversible = (reversible: boolean): string => (reversible ? 'reversible' : 'cannot be undone')

/**
 * The platform's state after an approval that is over; null while it waits, and where the log has
 * to say it.
 */
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

/** The part of a card that weighs nothing: what the call did, its dry run, its words. */
export const partTitles = {
  running: 'What it does',
  ran: 'What it did',
  dryRun: 'Dry run',
  arguments: 'Exact arguments',
  next: 'What the same answer asks next',
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

/**
 * Whether an argument is read word by word, as a command is. Others are names and numbers that the
 * title says.
 */
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

/**
 * The history of an approval, in sentences: who decided, when, by which door. Empty until somebody
 * speaks.
 */
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

/**
 * A rehearsal for people: facts and output line by line, then a sentence for each thing that was
 * not tried.
 */
export type Rehearsal = { lines: string[]; untried: string[] }

type Fields = Record<string, unknown>

/**
 * A device's answer to a rehearsal: a diff and checks from a copy, or facts, one a line. Null for a
 * dry run without a rehearsal, and for one that is not understood, which is shown as it is. Reads
 * by hand: the page carries no schemas.
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
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} kB`
  return bytes < 999_950_000 ? `${Math.round(bytes / 100_000) / 10} MB` : `${Math.round(bytes / 1e8) / 10} GB`
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

/** Somebody approved at Temporal without a token: what to do instead. */
export function formatUnheard(at: string): string {
  return `Somebody approved this at Temporal without a decision token (${at}). That decides nothing: decide here, or sign with "nightshift approvals token ID approve".`
}
