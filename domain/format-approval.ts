import type { Approval, CallRun, NextCall } from './approval.ts'
import type { Attachment } from './attachment.ts'
import type { VerificationOutcome } from './envelope.ts'
import { formatCount, formatMinute, withSpaces } from './format.ts'

/**
 * Seconds after a question within which an approval is counted separately, because perhaps nobody
 * read the question.
 */
export const hastySeconds = 5

/** Formats whether an action can be undone, for display beside its risk. */
export const formatReversible = (reversible: boolean): string => (reversible ? 'reversible' : 'cannot be undone')

/**
 * Describes what happened to the action of an ended approval. Null while the approval is pending,
 * and if the log describes the end.
 */
export function formatApprovalEnd({ status }: Pick<Approval, 'status'>): string | null {
  switch (status) {
    case 'expired':
      return 'Expired: nobody decided in time, and nothing was changed.'
    case 'denied':
      return 'Denied: nothing was changed.'
    case 'withdrawn':
      return 'Withdrawn: this approval changed nothing.'
    case 'approved':
      return 'Approved: it has not started yet.'
    case 'consumed':
      return 'Approved and started: the incident shows what it did.'
    default:
      return null
  }
}

/** Titles of the secondary parts of a card: the result of the call, its dry run, its arguments. */
export const partTitles = {
  running: 'What it does',
  ran: 'What it did',
  dryRun: 'Dry run',
  arguments: 'Exact arguments',
  next: 'Next calls of the same answer',
}

/** Formats ` and 2 more calls of the same answer` of the model; empty if there are none. */
export function formatAlsoAsked(count = 0): string {
  return count === 0 ? '' : ` and ${count === 1 ? '1 more call' : `${count} more calls`} of the same answer`
}

const verdictWords: Record<NonNullable<NextCall['verdict']>, string> = {
  run: 'runs without asking',
  ask: 'needs its own approval',
  refuse: 'would be refused now',
}

/** Formats a further call: `converge shard on web-2 (medium risk): needs its own approval`. */
export function formatNextCall({ tool, about, risk, verdict }: NextCall): string {
  return `${withSpaces(tool)}${about ? ` on ${about}` : ''} (${risk} risk): ${verdict ? verdictWords[verdict] : 'could not be judged now'}`
}

/** Describes in a sentence how far an approved call is, or how it ended. */
export function formatRunOutcome({ outcome, verification }: CallRun): string {
  if (outcome === 'running') return 'The action runs now.'
  if (outcome === 'failed') return 'The action failed.'
  if (outcome === 'indeterminate') return 'It is unknown whether the action took effect.'
  switch (verification?.outcome) {
    case 'held':
      return 'The action ran, and code verified it.'
    case 'not_held':
      return 'The action ran, but its verification failed.'
    case 'unproven':
      return 'The action ran; nothing can verify that it worked.'
    default:
      return 'The action ran; it is not verified yet.'
  }
}

/**
 * Whether the arguments must be read word by word, for example a command. All other arguments are
 * names and numbers that the title repeats.
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

/** Lists who decided an approval, when, and where. Empty before the first decision. */
export function listDecisions(approval: Approval): string[] {
  const said = approval.decisions.map(({ operator, decision, category, reason, via, at }) => {
    const why = decision === 'deny' ? ` (${withSpaces(category ?? 'other')}: ${reason ?? ''})` : ''
    return `${decision === 'approve' ? 'Approved' : 'Denied'} by ${operator}, ${formatMinute(at)}, by ${doors[via] ?? via}${why}`
  })
  if (approval.status === 'expired') said.push(`Expired: nobody decided by ${formatMinute(approval.expiresAt)}`)
  if (approval.status === 'withdrawn') {
    said.push(
      approval.edited ? `Withdrawn: ${approval.edited.by} changed the arguments` : 'Withdrawn: no longer needed',
    )
  }
  if (approval.status === 'pending' && said.length > 0) {
    said.push(`${approval.approvals} of ${approval.required} have approved`)
  }
  return said
}

/**
 * The dry run on a device, for people. `lines`: facts and output. `untried`: a sentence for each
 * part of the action that was not tried.
 */
export type Rehearsal = { lines: string[]; untried: string[] }

type Fields = Record<string, unknown>

/**
 * Reads a device's result of a dry run: a diff and checks on a copy, or facts, one per line. Null
 * if there is no result, or if its form is unknown; the dry run is then shown unchanged. Uses no
 * zod schema, because the web page contains none.
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
    ...(truncated ? ['The rest is left out.'] : []),
  ]
  const why = notRehearsed === undefined ? [] : [`No dry run: ${notRehearsed}`]
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

/** Names the outcome of a verification for people. An unknown outcome stays unchanged. */
export function formatVerification(outcome: string): string {
  return outcomeWords[outcome as VerificationOutcome] ?? withSpaces(outcome)
}

/** Formats a number of bytes: `812 bytes`, `24 kB`, `1.2 MB`. */
export function formatSize(bytes: number): string {
  if (bytes < 1_000) return formatCount(bytes, 'byte')
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} kB`
  return bytes < 999_950_000 ? `${Math.round(bytes / 100_000) / 10} MB` : `${Math.round(bytes / 1e8) / 10} GB`
}

/** Formats the facts about an attachment: `PNG, 640 x 360 px, 24 kB`; `text, 120 lines, 6 kB`. */
export function formatAttachment({ kind, bytes, width, height, lines }: Attachment): string {
  const size = formatSize(bytes)
  if (kind === 'png') return `PNG, ${width} x ${height} px, ${size}`
  return `text, ${formatCount(lines ?? 0, 'line')}, ${size}`
}

/** Returns the path in the API to the bytes of an attachment. */
export function pathOfAttachment(approvalId: string, { digest }: Pick<Attachment, 'digest'>): string {
  return `/api/v1/approvals/${encodeURIComponent(approvalId)}/attachments/${digest}`
}

/** Explains that an approval at Temporal without a token does not count, and what to do. */
export function formatUnheard(at: string): string {
  return `Somebody approved at Temporal without a decision token (${at}). That approval does not count. Decide here, or create a token with "nightshift approvals token ID approve".`
}
