import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { ingestOutcome } from '../../domain/alert.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatSpan, truncate } from '../../domain/format.ts'
import { closedStatuses } from '../../domain/incident.ts'
import { type ApiClient, ApiProblem } from '../api.ts'
import { describeStanding } from '../incidents/follow.ts'
import { type ApiIncident, apiIncident, listAll, listEventsAfter, readIncident } from '../read-api.ts'
import { printNote } from '../ui/terminal.ts'
import { row, type StepRow } from './steps.ts'

/** Marks the alert as a test, in its name, its text and a label for filters. */
const alertName = 'NightshiftSetupTest'
const alertType = 'nightshift_setup_test'
const summary = 'A test alert of setup; nothing is wrong, and nothing has to be repaired'

const posted = z.looseObject({
  alerts: z.array(z.looseObject({ incidentId: z.string().nullable(), outcome: ingestOutcome })),
})

/** `api` reads and closes incidents as an admin. `sender` sends alerts as a sender does. */
type Trial = { api: ApiClient; sender: ApiClient; publicUrl: string; waitMs: number; isQuiet: boolean }

/** Thrown if the alert was accepted, but opened no incident. */
class NotOpened extends Error {}

/**
 * Posts one test alert and follows its incident, until the investigation ends or clearly does not
 * begin. Closes the incident as not a fault. Shows the incident of an earlier test alert instead,
 * unless `isAgain` is set.
 */
export async function tryAlert(trial: Trial, { isAgain }: { isAgain: boolean }): Promise<StepRow> {
  const { api } = trial
  try {
    const path = `/api/v1/incidents?type=${alertType}&limit=1`
    const [last] = isAgain ? [] : await listAll(api, path, apiIncident, 1)
    if (last && closedStatuses.includes(last.status))
      return row(
        'test alert',
        'there',
        `${last.id} of ${last.createdAt.slice(0, 16)}Z is ${describeStanding(last)}: ${linkOf(trial, last)}`,
        'To send another test alert: "nightshift setup --again".',
      )
    return await follow(trial, last?.id ?? (await post(trial)))
  } catch (error) {
    if (error instanceof ApiProblem) return row('test alert', 'failed', error.message, error.remedy)
    if (error instanceof NotOpened)
      return row('test alert', 'failed', error.message, '"nightshift alerts list" shows the result.')
    throw error
  }
}

async function post({ sender }: Trial): Promise<string> {
  const mark = randomBytes(4).toString('hex')
  const answer = posted.parse(await sender.post('/api/v1/ingest/generic', bodyOf(mark, 'trigger')))
  const id = answer.alerts[0]?.incidentId
  if (id) return id
  throw new NotOpened(`the alert opened no incident: ${answer.alerts[0]?.outcome ?? 'the API refused the alert'}`)
}

const bodyOf = (mark: string, action: 'trigger' | 'close') => ({
  name: alertName,
  summary,
  severity: 'info',
  action,
  dedup: `nightshift-setup-${mark}`,
  labels: { alertname: alertName, test: 'nightshift-setup', mark },
})

const linkOf = ({ publicUrl }: Trial, { id }: ApiIncident): string => new URL(`/incidents/${id}`, publicUrl).href

/** Reasons of the queue that do not change by waiting. */
const staysWhere = new Set(['off', 'paused', 'budget', 'kept'])

/** Milliseconds within which a worker that starts together with the API requests work. */
const workerWithinMs = 20_000
const noWorker = 'No worker runs. Start a worker: "systemctl start nightshift-worker". If that fails, read its log'

async function follow(trial: Trial, id: string): Promise<StepRow> {
  const { api, waitMs, isQuiet } = trial
  const began = Date.now()
  let told = ''
  let lacksWorker = false
  for (;;) {
    const incident = await readIncident(api, id)
    const isWaiting = incident.status === 'open' && Date.now() - began > Math.min(workerWithinMs / 4, waitMs / 4)
    const didLack = lacksWorker
    lacksWorker = isWaiting && (await hasNoWorker(api))
    if (lacksWorker && !didLack && !isQuiet) printNote(`${noWorker}.`)
    const isUnattended = lacksWorker && Date.now() - began > Math.min(workerWithinMs, waitMs)
    const now = describeNow(incident)
    if (now !== told && !isQuiet) printNote(`  ${formatSpan(Date.now() - began).padStart(5)}  ${now}`)
    told = now
    const isLeft =
      incident.status === 'open' && (incident.keptReason !== null || staysWhere.has(incident.queue?.why ?? ''))
    const isOver = Date.now() - began > waitMs
    const isSettled = closedStatuses.includes(incident.status) || incident.status === 'awaiting_approval'
    if (isSettled || isLeft || isOver || isUnattended)
      return await close(trial, incident, {
        tookMs: Date.now() - began,
        remedy: isUnattended ? `${noWorker}, then "nightshift setup --again".` : isOver && !isLeft ? lateRemedy : null,
      })
    await sleep(1_000)
  }
}

const lateRemedy = 'The incident did not end in time. See "nightshift doctor", or give more time with --wait.'

/** Whether the API reports a failed worker. False also if the API reports no worker. */
async function hasNoWorker(api: ApiClient): Promise<boolean> {
  const { data } = parts.safeParse(await api.get('/api/v1/status'))
  return data?.parts.some(({ name, status }) => name === 'worker' && status === 'failed') ?? false
}

const parts = z.looseObject({ parts: z.array(z.looseObject({ name: z.string(), status: z.string() })) })

function describeNow(incident: ApiIncident): string {
  if (incident.status !== 'open') return `${incident.id} is ${describeStanding(incident)}`
  return `${incident.id} is open${incident.queue ? `: ${incident.queue.text}` : ''}`
}

async function close(
  trial: Trial,
  incident: ApiIncident,
  { tookMs, remedy }: { tookMs: number; remedy: string | null },
): Promise<StepRow> {
  const { api } = trial
  const { id } = incident
  const events = await listEventsAfter(api, id)
  await endAlert(trial, id)
  const isByAgent = incident.status === 'resolved' && incident.closedBy !== 'person'
  if (!isByAgent)
    await api.post(`/api/v1/incidents/${id}/resolve`, {
      outcome: 'no_fault',
      resolution:
        'A test alert of "nightshift setup": nothing was wrong. Setup posted the alert to test how alerts arrive.',
    })
  const what = describeCourse(incident, events, tookMs)
  const end = isByAgent ? '' : '; setup closed it as no fault'
  const link = linkOf(trial, incident)
  if (remedy !== null) return row('test alert', 'failed', `${what}${end}: ${link}`, remedy)
  const isInvestigated = events.some(({ kind }) => kind === 'model_answered')
  return row(
    'test alert',
    isInvestigated ? 'works' : 'not yet',
    `${what}${end}: ${link}`,
    isInvestigated
      ? null
      : 'Alerts arrive and open incidents. Nothing is investigated yet. "nightshift doctor" shows what is missing.',
  )
}

/** Ends the test alert: sends its end as the sender of the alert would. */
async function endAlert({ api, sender }: Trial, id: string): Promise<void> {
  const around = z
    .looseObject({ alerts: z.array(z.looseObject({ labels: z.record(z.string(), z.string()) })) })
    .safeParse(await api.get(`/api/v1/incidents/${id}/surroundings`))
  const mark = around.data?.alerts[0]?.labels.mark
  if (mark) await sender.post('/api/v1/ingest/generic', bodyOf(mark, 'close'))
}

function describeCourse(incident: ApiIncident, events: readonly IncidentEvent[], tookMs: number): string {
  const { id, status, queue, keptReason } = incident
  const answers = events.filter(({ kind }) => kind === 'model_answered').length
  const calls = events.filter(({ kind }) => kind === 'tool_started').length
  if (status === 'open' && answers === 0)
    return `${id} opened, but the agent did not investigate it: ${keptReason ?? queue?.text ?? 'no worker picked up the test incident'}`
  const last = events.findLast(({ kind }) => ['resolved', 'escalated', 'awaiting_approval', 'cancelled'].includes(kind))
  const said = last ? `, with this text: ${truncate(last.detail, 160)}` : ''
  return `${id} opened and was taken by the agent; the model answered ${answers === 1 ? 'once' : `${answers} times`} and made ${calls} calls; after ${formatSpan(tookMs)} it was ${describeStanding(incident)}${said}`
}
