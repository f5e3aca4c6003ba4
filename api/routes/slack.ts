import { setTimeout as sleep } from 'node:timers/promises'
import type { Hono } from 'hono'
import { operatorElsewhere } from '../../db/access/operators.ts'
import type { Person } from '../../db/incidents/close-incident.ts'
import { incidentById, NotAllowedError } from '../../db/incidents/incidents.ts'
import { tellAgent } from '../../db/incidents/messages.ts'
import { releaseOwnership } from '../../db/incidents/owners.ts'
import { takeRequest } from '../../db/outbox/slack-requests.ts'
import { incidentOfThread } from '../../db/outbox/slack-threads.ts'
import { gradeIncident } from '../../db/trust/grade.ts'
import { type Incident, runningStatuses } from '../../domain/incident.ts'
import { maxMessageCharacters } from '../../domain/message.ts'
import { permissions } from '../../domain/permissions.ts'
import type { CauseGrade } from '../../domain/trust.ts'
import type { SlackClient } from '../../notify/slack/client.ts'
import {
  approvalOfButton,
  incidentOfButton,
  isIncidentButton,
  judgeSignature,
  type OwnerPress,
  readEvent,
  readInteraction,
  type SlackEvent,
} from '../../notify/slack/interaction.ts'
import type { ApiDeps, Context, Env } from '../deps.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { takeForPerson } from './incident-endings.ts'
import { actOn, answerPrivately, recordSuspicion } from './slack-decision.ts'

const path = '/slack/interactions'
const eventPath = '/slack/events'
/**
 * Milliseconds for the response to Slack. Slack waits three seconds and then shows a failure to the
 * member. Longer work continues after the response.
 */
const answerWithinMs = 2_000

/**
 * The routes for Slack: buttons, and messages in a thread. Accepts only requests that Slack signed
 * a few minutes ago at most, each once; a cookie or token has no effect. Verifies the raw body
 * before it parses the body.
 */
export function slackRoutes(app: Hono<Env>, deps: ApiDeps): void {
  app.use(path, limitBody)
  app.post(path, async (c) => {
    const { slack } = deps
    if (!slack) throw new Problem(404, 'NOT_FOUND', 'Slack is not configured here.')
    const interaction = readInteraction(await readSignedBody(deps, c, slack.settings.signingSecret, pressOf))
    if (interaction.kind === 'other') return c.body(null, 200)
    if (interaction.kind === 'denial' && interaction.category === 'other' && interaction.words === null) {
      return c.json({ response_action: 'errors', errors: { words: 'Give a reason: the agent reads it.' } })
    }
    const acted =
      interaction.kind === 'owner' ? pressOwner(deps, slack, c, interaction) : actOn(deps, slack, c, interaction)
    const acting = acted.catch((error) => {
      deps.log.error({ err: error }, 'a button in Slack had no effect')
    })
    await Promise.race([acting, sleep(answerWithinMs, undefined, { ref: false })])
    return c.body(null, 200)
  })
  app.use(eventPath, limitBody)
  app.post(eventPath, async (c) => {
    const { slack } = deps
    if (!slack) throw new Problem(404, 'NOT_FOUND', 'Slack is not configured here.')
    const event = readEvent(await readSignedBody(deps, c, slack.settings.signingSecret, writerOf))
    if (event.kind === 'challenge') return c.text(event.challenge)
    if (event.kind === 'message') await handleMessage(deps, slack, event)
    return c.body(null, 200)
  })
}

type Sender = { user: string; button: string }

function pressOf(body: string): Sender {
  const interaction = readInteraction(body)
  return interaction.kind === 'other' ? { user: 'unknown', button: '' } : interaction
}

function writerOf(body: string): Sender {
  const event = readEvent(body)
  return { user: event.kind === 'message' ? event.user : 'unknown', button: '' }
}

/** Returns the raw body after it was verified as signed by Slack, recent and new. */
async function readSignedBody(
  deps: ApiDeps,
  c: Context,
  secret: string,
  senderOf: (body: string) => Sender,
): Promise<string> {
  const { db } = deps
  const body = new Uint8Array(await c.req.arrayBuffer())
  const timestamp = c.req.header('x-slack-request-timestamp')
  const signature = c.req.header('x-slack-signature')
  const verdict = judgeSignature(secret, { timestamp, signature, body }, Date.now())
  if (verdict === 'forged') {
    // Trusts nothing in a forged request, not even the incident that it names.
    await recordSuspicion(deps, c, null, {
      code: 'FORGED_REQUEST',
      subject: 'slack',
      detail: "a request without Slack's signature",
    })
    throw refused()
  }
  const text = Buffer.from(body).toString('utf8')
  const isFirst = verdict === 'good' && (await takeRequest(db, signature as string))
  if (isFirst) return text
  const code = verdict === 'stale' ? 'STALE_REQUEST' : 'REPLAYED_REQUEST'
  const { user, button } = senderOf(text)
  const detail = `a request with Slack's signature that ${verdict === 'stale' ? 'is too old or too new' : 'arrived before'}`
  await recordSuspicion(deps, c, approvalOfButton(button), { code, subject: user, detail })
  throw refused()
}

/** Returns one response for every reason, so that guessing reveals nothing. */
function refused(): Problem {
  return new Problem(401, 'NOT_FROM_SLACK', 'This request is not from Slack, or it is too old.')
}

/**
 * Passes a message in the thread of an incident that is investigated to the incident's run, under
 * the member's operator name. In all other threads, and after the run, people write only to each
 * other.
 */
async function handleMessage(
  deps: ApiDeps,
  slack: SlackClient,
  heard: Extract<SlackEvent, { kind: 'message' }>,
): Promise<void> {
  const incident = await incidentOfThread(deps.db, heard.spot)
  if (!incident || !runningStatuses.includes(incident.status)) return
  const url = `${deps.publicUrl?.replace(/\/+$/, '')}/incidents/${incident.id}`
  const say = (text: string) => answerPrivately(deps, slack, heard, text, { url, word: 'Open the incident' })
  const operator = await operatorElsewhere(deps.db, 'slackUserId', heard.user)
  if (!operator) {
    return await say(
      `Not sent to the agent: your Slack member is not linked to a user. Ask an admin to run: nightshift operators set NAME --slack ${heard.user}`,
    )
  }
  if (!permissions[operator.role].includes('record')) {
    return await say(`Not sent to the agent: ${operator.name} (${operator.role}) lacks the permission record.`)
  }
  if (heard.text === '' || heard.text.length > maxMessageCharacters) {
    return await say(`Not sent to the agent: a message has 1 to ${maxMessageCharacters} characters.`)
  }
  const by = { operatorId: operator.id, actor: `user:${operator.name}`, name: operator.name }
  const answered = await tellAgent(deps.db, incident.id, by, heard.text, `slack:${heard.eventId}`)
  if (answered.outcome === 'not_allowed') await say(`Not sent to the agent: ${answered.why}.`)
  if (answered.outcome === 'too_many')
    await say('Not sent to the agent: wait until the agent has read the earlier messages.')
}

/**
 * Carries out Take, Give back and the grade of a cause. The member acts as the operator with this
 * member id and needs the usual rights. Only the member sees the result, and the thread follows the
 * rows.
 */
async function pressOwner(deps: ApiDeps, slack: SlackClient, c: Context, asked: OwnerPress): Promise<void> {
  const incident = await incidentOf(deps, slack, asked)
  const url = incident && `${deps.publicUrl?.replace(/\/+$/, '')}/incidents/${incident.id}`
  const say = (text: string) => answerPrivately(deps, slack, asked, text, { url, word: 'Open the incident' })
  if (!incident) {
    const event = {
      code: 'FOREIGN_BUTTON',
      subject: asked.user,
      detail: 'a button that does not belong to this Nightshift',
    }
    await recordSuspicion(deps, c, null, event)
    return await say('This button does not belong to this Nightshift, or it is too old. Nothing was done.')
  }
  const operator = await operatorElsewhere(deps.db, 'slackUserId', asked.user)
  if (!operator) {
    return await say(
      `Nothing was done: your Slack member is not linked to a user. Ask an admin to run: nightshift operators set NAME --slack ${asked.user}`,
    )
  }
  if (operator.disabledAt !== null) return await say(`Nothing was done: ${operator.name} is disabled.`)
  if (!permissions[operator.role].includes('manage_incident')) {
    return await say(`Nothing was done: ${operator.name} (${operator.role}) lacks the permission manage_incident.`)
  }
  const by = { operatorId: operator.id, actor: `user:${operator.name}`, name: operator.name }
  await say(await pressed[asked.action](deps, incident, by, incidentOfButton(asked.button)?.attempt ?? null))
}

/** Finds the incident of a button, if Nightshift made the button for this incident and action. */
async function incidentOf({ db }: ApiDeps, { settings }: SlackClient, asked: OwnerPress): Promise<Incident | null> {
  const named = incidentOfButton(asked.button)
  if (named === null || !isIncidentButton(settings.signingSecret, named, asked.action, asked.button)) return null
  return await incidentById(db, named.id)
}

type Pressed = (deps: ApiDeps, incident: Incident, by: Person, attempt: number | null) => Promise<string>

/**
 * Stores the grade as the page's button does, about the cause in the message. The newest grade
 * counts.
 */
const grade =
  (verdict: CauseGrade): Pressed =>
  async ({ db }, { id }, by, attempt) => {
    const graded = await gradeIncident(db, by, id, { callId: null, attempt, verdict, text: null })
    if (graded.outcome !== 'graded') return `Your grade was not recorded: ${graded.message}.`
    return verdict === 'wrong'
      ? 'Recorded: the cause was wrong. You can write the right cause on the page of the incident.'
      : `Recorded: the cause was ${verdict === 'right' ? 'right' : 'partly right'}.`
  }

const pressed: Record<OwnerPress['action'], Pressed> = {
  take,
  give_back: release,
  cause_right: grade('right'),
  cause_partly: grade('partly'),
  cause_wrong: grade('wrong'),
}

async function take(deps: ApiDeps, incident: Incident, by: Person): Promise<string> {
  if (incident.owner?.id === by.operatorId) return 'You have the incident already.'
  try {
    return (await takeForPerson(deps, incident.id, by))
      ? 'The incident is yours. While you have it, nobody is reminded and the agent does not investigate it.'
      : 'Requested. The run ends first, then the incident is yours.'
  } catch (error) {
    if (!(error instanceof NotAllowedError)) throw error
    return `Nothing was done: the incident is ${error.status.replaceAll('_', ' ')}.`
  }
}

async function release({ db }: ApiDeps, incident: Incident, by: Person): Promise<string> {
  const given = await db.transaction().execute((trx) => releaseOwnership(trx, incident.id, by))
  return given ? 'The incident is given back.' : 'Nothing was done: nobody has taken the incident.'
}
