import type { Approval } from '../../domain/approval.ts'
import type { EscalationReport } from '../../domain/escalation.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Notification } from '../../domain/notification.ts'
import { type CardGrounds, renderCard, renderRoot } from './card.ts'
import type { SlackMethod } from './client.ts'
import { buttonValue, type IncidentPress, incidentButton } from './interaction.ts'
import { renderNotification, type SlackMessage } from './notification.ts'

type StepPlace = { channel: string; ts: string }

/** The current state of the incident when a delivery is due. */
type SlackSituation = {
  incident: Incident
  report: EscalationReport | null
  approvals: readonly Approval[]
  thread: { posted: boolean; place: StepPlace | null }
  /** The message with the approval of this delivery. Null if Slack never got one. */
  card: { place: StepPlace | null } | null
  /** The reasons for the approval of this delivery. */
  grounds: CardGrounds
}

/** The subject of a delivery: a notification to post, or a message to update. */
export type SlackTask =
  | { kind: 'tell'; notification: Notification; approval: Approval | null }
  | { kind: 'root' }
  | { kind: 'card'; approval: Approval }

/**
 * The next call of a delivery. `shows`: which kind of message the call posts or changes. `more`:
 * true if the delivery needs a further call.
 */
export type SlackStep = {
  method: Extract<SlackMethod, 'chat.postMessage' | 'chat.update'>
  body: object
  shows: 'root' | 'card' | 'reply'
  more: boolean
}

export type SlackAddresses = {
  /** The channel in which new threads begin. */
  channel: string
  publicUrl: string
  signingSecret: string
}

/**
 * Returns the next call of a delivery, or why the delivery needs none. Has no side effect. Uses the
 * current state, so that a repeated or late delivery finds the work finished and never asks for an
 * approval that is already decided.
 */
export function planSlack(task: SlackTask, at: SlackSituation, to: SlackAddresses): SlackStep | { nothing: string } {
  const root = at.thread.place
  switch (task.kind) {
    case 'root':
      if (root) return update(root, rootOf(at, to), 'root')
      return at.thread.posted ? postRoot(at, to, false) : { nothing: 'the incident has no thread yet' }
    case 'card': {
      const place = at.card?.place
      if (place) return update(place, cardOf(task.approval, at, to), 'card')
      const isLost = at.card !== null && task.approval.status === 'pending'
      return isLost ? postCard(task.approval, at, to) : { nothing: 'Slack never showed this question' }
    }
    case 'tell':
      return tell(task, at, to)
  }
}

function tell(
  { notification, approval }: Extract<SlackTask, { kind: 'tell' }>,
  at: SlackSituation,
  to: SlackAddresses,
): SlackStep | { nothing: string } {
  const root = at.thread.place
  if (approval && approval.status !== 'pending') return { nothing: `the approval is ${approval.status} already` }
  // Posts a message about several incidents in the channel, because few people read the thread of a
  // single incident.
  if (apart.has(notification.trigger)) return post(to, notification)
  if (!root) return postRoot(at, to, approval !== null || !saidByRoot.has(notification.trigger))
  const isFirstQuestion = approval && notification.approval?.reminder === 0
  if (isFirstQuestion)
    return at.card?.place ? { nothing: 'Slack already shows this question' } : postCard(approval, at, to)
  // Shows an urgent message in the channel too, because a thread notifies only its followers.
  const isUrgent = (broadcast.has(notification.trigger) && notification.page) || notification.approval?.reminder === 2
  return reply(root, renderNotification(notification), 'reply', isUrgent)
}

/** Triggers whose messages are posted in the channel, outside of threads. */
const apart = new Set<Notification['trigger']>([
  ...(['digest', 'spared', 'morning', 'hand_over', 'notice', 'late', 'undelivered', 'duty'] as const),
])
/** Triggers that the first message of a thread already covers. */
const saidByRoot = new Set<Notification['trigger']>(['critical', 'escalated', 'resolved'])
/** Triggers whose replies in a thread also show in the channel, to wake somebody. */
const broadcast = new Set<Notification['trigger']>(['escalated', 'reopened', 'reminder', 'owner'])

function post({ channel }: SlackAddresses, notification: Notification): SlackStep {
  const body = { channel, ...renderNotification(notification) }
  return { method: 'chat.postMessage', body, shows: 'reply', more: false }
}

function postRoot(at: SlackSituation, to: SlackAddresses, more: boolean): SlackStep {
  return { method: 'chat.postMessage', body: { channel: to.channel, ...rootOf(at, to) }, shows: 'root', more }
}

function postCard(approval: Approval, at: SlackSituation, to: SlackAddresses): SlackStep {
  const root = at.thread.place
  return root ? reply(root, cardOf(approval, at, to), 'card', true) : postRoot(at, to, true)
}

function reply(root: StepPlace, message: SlackMessage, shows: 'card' | 'reply', isUrgent: boolean): SlackStep {
  const body = { channel: root.channel, thread_ts: root.ts, reply_broadcast: isUrgent, ...message }
  return { method: 'chat.postMessage', body, shows, more: false }
}

function update(place: StepPlace, message: SlackMessage, shows: 'root' | 'card'): SlackStep {
  const { text, blocks } = message
  return { method: 'chat.update', body: { ...place, text, blocks }, shows, more: false }
}

function rootOf({ incident, report, approvals }: SlackSituation, to: SlackAddresses): SlackMessage {
  const { publicUrl, signingSecret } = to
  const url = `${publicUrl}/incidents/${incident.id}`
  const buttons = (action: IncidentPress) => incidentButton(signingSecret, incident, action)
  return renderRoot({ incident, report, approvals, url, buttons })
}

function cardOf(
  approval: Approval,
  { incident, grounds, approvals }: SlackSituation,
  to: SlackAddresses,
): SlackMessage {
  const alsoAsked = approvals.filter(
    ({ id, status, askedWith }) =>
      askedWith !== null && askedWith === approval.askedWith && status === 'pending' && id !== approval.id,
  ).length
  const button = buttonValue(to.signingSecret, approval)
  return renderCard(approval, incident, `${to.publicUrl}/approvals/${approval.id}`, button, { ...grounds, alsoAsked })
}
