import { z } from 'zod'
import { formatTimeOfDay } from './format.ts'
import { severity } from './incident.ts'
import { type CardLine, cardLine } from './notification.ts'
import { count } from './status.ts'

/** The data and lines of the morning card (a night) and of the hand-over (a shift). */

const shiftIncident = z.object({ id: z.string(), title: z.string(), severity, at: z.string() })
export type ShiftIncident = z.infer<typeof shiftIncident>

const shiftQuestion = z.object({
  id: z.string(),
  incidentId: z.string(),
  title: z.string(),
  summary: z.string(),
  status: z.enum(['pending', 'approved', 'denied', 'expired', 'withdrawn', 'consumed']),
  expiresAt: z.string(),
  /** The person on the configured list whose turn it is to answer. */
  of: z.string().nullable(),
  /** True if the question woke nobody, because the budget of wakes was used up. */
  isHeld: z.boolean(),
})
export type ShiftQuestion = z.infer<typeof shiftQuestion>

const several = <Each extends z.ZodType>(each: Each) => z.object({ count, first: z.array(each) })

export const followUp = z.object({
  incidentId: z.string(),
  title: z.string(),
  owner: z.string().nullable(),
  group: z.string().nullable(),
  /** The day on which the task is due, such as 2026-12-02. */
  dueOn: z.string(),
  isOverdue: z.boolean(),
  createdAt: z.string(),
  closedAt: z.string().nullable(),
  closedBy: z.string().nullable(),
})
export type FollowUp = z.infer<typeof followUp>

const shift = z.object({
  since: z.string(),
  until: z.string(),
  repaired: several(shiftIncident),
  escalated: several(shiftIncident.extend({ isMitigated: z.boolean() })),
  /**
   * Pages that were not sent, because the incident was repaired and the alert ended while they
   * waited.
   */
  spared: several(shiftIncident.extend({ text: z.string() })),
  /**
   * Open questions: first the questions that woke nobody, then by expiry. Decided questions that
   * woke nobody come last.
   */
  questions: several(shiftQuestion),
  followUps: several(followUp),
  /** Incidents that are open now. */
  open: several(shiftIncident),
  watched: several(shiftIncident),
  lostDuties: z.array(z.string()),
})
export type Shift = z.infer<typeof shift>

const cardView = z.object({ title: z.string(), since: z.string(), until: z.string(), lines: z.array(cardLine) })
/** The current content of the morning card and of the hand-over, and the remaining tasks. */
export const shiftView = z.object({ morning: cardView, handOver: cardView, followUps: several(followUp) })
export type ShiftView = z.infer<typeof shiftView>

/** Maximum number of lines of one kind on a card, so that the card fits on a phone. */
const listedEach = 3

const toMinute = (iso: string) => `${formatTimeOfDay(iso, 'utc').slice(0, 5)} UTC`
const line = (text: string, path: string | null): CardLine => ({ text, path, url: null })
const many = (count: number, one: string, more: string) => `${count} ${count === 1 ? one : more}`

/** Summarizes a night in one line. Null if nothing happened and no question waits. */
export function headlineOf({ repaired, escalated, spared, questions, followUps }: Shift): string | null {
  const waiting = questions.first.filter(({ status }) => status === 'pending').length
  const parts = [
    // Adds "or more" if all listed questions wait. Waiting questions are listed first, so more of
    // them may not be listed.
    waiting > 0 &&
      (waiting === questions.first.length && questions.count > waiting
        ? `${waiting} or more questions wait`
        : many(waiting, 'question waits', 'questions wait')),
    escalated.count > 0 && `${escalated.count} escalated`,
    repaired.count > 0 && `${repaired.count} repaired`,
    spared.count > 0 && many(spared.count, 'page not sent', 'pages not sent'),
    followUps.count > 0 && many(followUps.count, 'follow-up overdue', 'follow-ups overdue'),
  ].filter(Boolean)
  // Mentions questions that waited for the card, even if they were decided or expired meanwhile.
  if (parts.length === 0 && questions.count > 0)
    parts.push(many(questions.count, 'approval has ended', 'approvals have ended'))
  return parts.length > 0 ? parts.join(', ') : null
}

/** Returns the title of the morning card. `day`: the day on which the night ends. */
export function morningTitle(day: string, shift: Shift): string {
  return `Morning of ${day}: ${headlineOf(shift) ?? 'a quiet night'}`
}

export function handOverTitle(at: string): string {
  return `Hand-over of ${at.slice(0, 10)}, ${at.slice(11, 16)} UTC`
}

/** Builds the morning card. Questions that wait for a decision come first. */
export function morningLines(shift: Shift): CardLine[] {
  const { repaired, escalated, spared, questions, followUps } = shift
  return [
    ...listed(questions, sayQuestion, ({ id }) => `approvals/${id}`, 'approvals'),
    ...listed(
      escalated,
      ({ title, isMitigated }) => `${isMitigated ? 'Mitigated' : 'Escalated'}: ${title}`,
      ({ id }) => `incidents/${id}`,
      'incidents?status=escalated',
    ),
    ...listed(followUps, sayOverdue, ({ incidentId }) => `incidents/${incidentId}`, 'shift'),
    ...listed(
      spared,
      ({ title, text }) => `${text}: ${title}`,
      ({ id }) => `incidents/${id}`,
      'reports',
    ),
    ...(repaired.count > 0
      ? [line(`Repaired: ${names(repaired)}`, toPage(repaired.first, 'incidents?status=resolved'))]
      : []),
  ]
}

function listed<Each>(
  { count, first }: { count: number; first: Each[] },
  say: (each: Each) => string,
  pathOf: (each: Each) => string,
  all: string,
): CardLine[] {
  const shown = first.slice(0, listedEach).map((each) => line(say(each), pathOf(each)))
  const left = count - shown.length
  return left > 0 ? [...shown, line(`and ${left} more`, all)] : shown
}

function sayQuestion({ status, expiresAt, of, summary, title }: ShiftQuestion): string {
  const what = `${summary} (${title})`
  if (status !== 'pending') return `Question, ${status === 'consumed' ? 'approved' : status}: ${what}`
  return `Waits for ${of ?? 'you'} until ${toMinute(expiresAt)}: ${what}`
}

function sayOverdue({ owner, group, dueOn, title }: FollowUp): string {
  return `Follow-up of ${owner ?? group ?? 'nobody yet'}, due ${dueOn}: ${title}`
}

const names = ({ count, first }: { count: number; first: { title: string }[] }) => {
  const shown = first.slice(0, listedEach).map(({ title }) => title)
  return [shown.join(', '), ...(count > shown.length ? [`and ${count - shown.length} more`] : [])].join(' ')
}

const toPage = (first: { id: string }[], all: string) => (first.length === 1 ? `incidents/${first[0]?.id}` : all)

/** Builds the five lines of the hand-over. A line says so if it has nothing to report. */
export function handOverLines(shift: Shift): CardLine[] {
  const { open, questions, watched, lostDuties } = shift
  const waiting = questions.first.filter(({ status }) => status === 'pending')
  const waits = waiting
    .slice(0, listedEach)
    .map(({ summary, of, expiresAt }) => `${summary}, for ${of ?? 'all who may decide'} until ${toMinute(expiresAt)}`)
  // Adds "or more" if all listed incidents are critical. Critical incidents are listed first, so
  // more of them may not be listed.
  const critical = open.first.filter((each) => each.severity === 'critical').length
  const orMore = critical === open.first.length && open.count > critical ? ' or more' : ''
  return [
    line(
      open.count === 0
        ? 'Open: nothing'
        : `Open: ${many(open.count, 'incident', 'incidents')}${critical > 0 ? ` (${critical}${orMore} critical)` : ''}: ${names(open)}`,
      open.count === 0 ? null : toPage(open.first, 'incidents'),
    ),
    line(
      waits.length === 0
        ? 'Waits: nothing'
        : `Waits: ${waits.join('; ')}${waiting.length > waits.length ? `; and ${waiting.length - waits.length} more` : ''}`,
      waits.length === 0 ? null : waiting.length === 1 ? `approvals/${waiting[0]?.id}` : 'approvals',
    ),
    line(
      watched.count === 0 ? 'Watched: nothing' : `Watched after a repair: ${names(watched)}`,
      watched.count === 0 ? null : toPage(watched.first, 'incidents?status=resolved'),
    ),
    line(
      lostDuties.length === 0 ? 'Nightshift: no part has failed' : `Nightshift: failed parts: ${lostDuties.join(', ')}`,
      lostDuties.length === 0 ? null : 'health',
    ),
    lookFirst(shift),
  ]
}

/**
 * Chooses what people should check first: a failed part, a critical incident, a question, an
 * overdue task, then anything else.
 */
function lookFirst({ open, questions, followUps, lostDuties }: Shift): CardLine {
  const [duty] = lostDuties
  if (duty) return line(`Look first at: ${duty}, a failed part of Nightshift`, 'health')
  const critical = open.first.find((each) => each.severity === 'critical')
  if (critical) return line(`Look first at: ${critical.title} (critical)`, `incidents/${critical.id}`)
  const question = questions.first
    .filter(({ status }) => status === 'pending')
    .toSorted((a, b) => a.expiresAt.localeCompare(b.expiresAt))[0]
  if (question) return line(`Look first at: ${sayQuestion(question)}`, `approvals/${question.id}`)
  const [overdue] = followUps.first
  if (overdue) return line(`Look first at: ${sayOverdue(overdue)}`, `incidents/${overdue.incidentId}`)
  const [oldest] = open.first
  return oldest
    ? line(`Look first at: ${oldest.title}`, `incidents/${oldest.id}`)
    : line('Look first at: nothing waits', null)
}
