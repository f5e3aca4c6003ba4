import type { z } from 'zod'
import { defaultExpirySeconds, maxExpirySeconds } from './approval.ts'
import { isType } from './incident-type.ts'
import { morningCards } from './night.ts'
import { webhookTemplates } from './notification.ts'
import { retainedKinds } from './retention.ts'
import { nameFaults } from './schema-faults.ts'
import {
  daysOrKeep,
  declaredModel,
  dollars,
  flag,
  handOverTimes,
  httpUrl,
  investigateFilter,
  names,
  nightHours,
  onCallRules,
  oneOf,
  pageHold,
  prices,
  prompt,
  resourcePatterns,
  resourceRules,
  type SettingKind,
  type SettingUnit,
  senderSecret,
  stateRules,
  wakeBudget,
  webhookSecret,
  whole,
  yesNo,
} from './setting-value.ts'
import { trustLevels } from './trust.ts'

/** Where a setting stands on the page, in the page's order. */
export const settingSections = [
  'Agent',
  'Model',
  'Budget',
  'Approvals',
  'Alerts',
  'Changes',
  'Notifications',
  'Retention',
] as const
type SettingSection = (typeof settingSections)[number]

export type Setting = {
  key: string
  section: SettingSection
  /** What it is, in a few words. */
  label: string
  /** With a family, the part after the dot is an incident type, a tool or a sender. */
  family: boolean
  schema: z.ZodType
  /** What its number counts; null where it is no number. */
  unit: SettingUnit | null
  fallback: string | null
  secret: boolean
  /** The environment variable between the global key and the default; null when there is none. */
  environment: string | null
  description: string
}

type Said = { label: string; description: string; secret?: boolean; environment?: string }

const setting = (key: string, kind: SettingKind, fallback: string | null, said: Said): Omit<Setting, 'section'> => ({
  ...kind,
  ...said,
  key,
  family: key.endsWith('.*'),
  fallback,
  secret: said.secret ?? false,
  environment: said.environment ?? null,
})

const seconds = (minimum: number, max: number) => whole(minimum, max, 's')

const agentSettings = [
  setting('agent.paused', flag, 'false', {
    label: 'Agent paused',
    description: 'No new claims and no writes; reads go on.',
  }),
  setting('agent.investigate', investigateFilter, 'all', {
    label: 'Investigate unasked',
    description:
      'Which incidents are investigated unasked: all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab. It holds when an incident opens and again when work begins.',
  }),
  setting('agent.investigate.*', investigateFilter, 'all', {
    label: 'Investigate unasked, by type',
    description: 'The same for one incident type.',
  }),
  setting('agent.max_concurrent', whole(1, 100, 'investigations'), '3', {
    label: 'Leaders at once',
    description:
      'Leaders that investigate at once: a slot for each type of incident. Of several slots one is kept for critical incidents.',
    environment: 'AGENT_MAX_CONCURRENT',
  }),
  setting('agent.max_critical', whole(0, 100, 'investigations'), '12', {
    label: 'Critical ones at once, beside the others',
    description:
      'Critical incidents, leaders and followers, that investigate at once beside the limits for all: a storm of warnings makes none wait.',
  }),
  setting('agent.max_questions', whole(1, 100, 'investigations'), '2', {
    label: 'Questions at once',
    description: 'Questions of people that are investigated at once, beside the slots of incidents and before them.',
  }),
  setting('agent.max_followers', whole(1, 1_000, 'investigations'), '15', {
    label: 'Followers at once, all types',
    description: 'Followers that investigate at once, over all types.',
  }),
  setting('agent.concurrency.*', whole(1, 100, 'investigations'), '5', {
    label: 'Followers at once, one type',
    description: 'Followers of this type that investigate at once.',
    environment: 'AGENT_FOLLOWER_CONCURRENT',
  }),
  setting('agent.leader_wait', seconds(0, 86_400), '300', {
    label: 'Followers wait for their leader',
    description: 'Seconds followers wait while their leader awaits approval.',
  }),
  setting('agent.max_turns', whole(1, 200, 'turns'), '10', {
    label: 'Turns of an investigation',
    description: 'Turns before an investigation escalates.',
    environment: 'LLM_MAX_TURNS',
  }),
  setting('agent.max_turns.*', whole(1, 200, 'turns'), '10', {
    label: 'Turns of an investigation, by type',
    description: 'The same for one incident type.',
    environment: 'LLM_MAX_TURNS',
  }),
  setting('agent.trust', oneOf(trustLevels), 'propose', {
    label: 'Trust of a new pair',
    description:
      'How far a tool goes by itself in incidents of a type for which nobody has set it: shadow, propose or act. A level that was set on *Trust* counts before it.',
    environment: 'AGENT_TRUST',
  }),
  setting('agent.footprint', resourcePatterns, '', {
    label: 'What Nightshift stands on',
    description:
      'Resources that Nightshift itself stands on, beside those of its database, Temporal and model that it finds by their addresses: `KIND:ID` with `*` for any characters, several between blanks. Whatever changes them is critical.',
  }),
  setting('agent.tools.*', names, null, {
    label: 'Tools offered, by type',
    description: 'Comma-separated tools offered for this type; all when not set.',
  }),
  setting('agent.system_prompt', prompt, null, {
    label: 'System prompt',
    description: 'Replaces the system prompt; constraints and protocol are still appended.',
  }),
  setting('agent.system_prompt.*', prompt, null, {
    label: 'System prompt, by type',
    description: 'The same for one incident type.',
  }),
]

const modelSettings = [
  setting('agent.model.leader', declaredModel, null, {
    label: 'Model of leaders',
    description: 'The model that leaders are given to, by its name in LLM_SERVERS_FILE.',
  }),
  setting('agent.model.follower', declaredModel, null, {
    label: 'Model of followers',
    description: 'The same for followers.',
  }),
  setting('agent.model.type.*', declaredModel, null, {
    label: 'Model, by type',
    description: 'The same for one incident type, for leaders and followers alike.',
  }),
]

const budgetSettings = [
  setting('agent.time_budget', seconds(10, 86_400), '1800', {
    label: 'Time of an investigation',
    description: 'Seconds of work per investigation; waiting for approval is not counted.',
  }),
  setting('agent.token_budget', whole(1_000, 100_000_000, 'tokens'), '400000', {
    label: 'Tokens of an investigation',
    description: 'Tokens per investigation.',
  }),
  setting('agent.budget_day', dollars, null, {
    label: 'Cap of a day',
    description:
      'Dollars that models may cost a day (UTC). Notices at 80 and 100 %; then nothing is investigated until the day ends. Unset: no cap.',
  }),
  setting('agent.budget_month', dollars, null, { label: 'Cap of a month', description: 'The same for a month (UTC).' }),
  setting('agent.prices', prices, '', {
    label: 'Prices of models',
    description:
      'Dollars per million tokens in and out, over the shipped list prices: `model = in / out`, several separated by a semicolon; `*` at the end fits any rest, and `model = 0` costs nothing.',
  }),
]

const approvalsSettings = [
  setting('approval.expiry.*', seconds(1, maxExpirySeconds), String(defaultExpirySeconds), {
    label: 'Time to decide, by tool',
    description:
      'Seconds a person may take to decide about this tool. Unset, a command on a device has 1800: its rehearsal ages.',
  }),
  setting('approval.risk.*', oneOf(['medium', 'high', 'critical']), null, {
    label: 'Least risk class, by tool',
    description: 'Raises the risk class of this tool; a lower class than its own has no effect.',
  }),
  setting('approval.on_call', onCallRules, '', {
    label: 'Whom to ask, one after the other',
    description:
      'Whom a question is put to: the first person at once, the next after 5 minutes, the third after 10. `HOURS ZONE KIND:ID -> PERSON PERSON`, each part but the people may be left out; several rules separated by a semicolon, the first that fits counts. Where it is empty, or PagerDuty hears of the question, everybody who may decide is told at once.',
  }),
  setting('approval.required.*', whole(1, 5, 'people'), '1', {
    label: 'Approvals required, by tool',
    description: 'People who must agree to this tool, if more than its risk asks for.',
  }),
]

const alertsSettings = [
  setting('alert.quiet', seconds(0, 86_400), '120', {
    label: 'Quiet before an incident closes',
    description: 'Seconds without an alert before an incident may close as over.',
  }),
  setting('alert.settle', seconds(1, 604_800), '900', {
    label: 'Time to end after a repair',
    description: 'Seconds a firing alert gets to end after a repair; one that is critical is escalated then.',
  }),
  setting('alert.settle.*', seconds(1, 604_800), '900', {
    label: 'Time to end after a repair, by type',
    description: 'The same for one incident type.',
  }),
  setting('alert.settle_max', seconds(1, 2_592_000), '14400', {
    label: 'Longest firing after a repair',
    description: 'Seconds after a repair at which an alert that still fires is escalated.',
  }),
  setting('alert.settle_max.*', seconds(1, 2_592_000), '14400', {
    label: 'Longest firing after a repair, by type',
    description: 'The same for one incident type.',
  }),
  setting('alert.stale', seconds(60, 2_592_000), '86400', {
    label: 'Unknown without a repeat',
    description: 'Seconds without a repeat before an alert of a sender without ends counts as unknown.',
  }),
  setting('alert.ends.*', yesNo, null, {
    label: 'Sends ends of alerts, by sender',
    description: 'Whether this sender (alertmanager, generic) says when an alert ends: yes or no.',
  }),
  setting('alert.heartbeats', names, 'Watchdog, DeadMansSwitch', {
    label: 'Heartbeats',
    description: 'Names of alerts that always fire: they open no incident, their silence does.',
  }),
  setting('alert.heartbeat_silence', seconds(60, 2_592_000), null, {
    label: 'Silence of a heartbeat',
    description:
      'Seconds without a heartbeat before it counts as stopped. Unset: twice the longest gap so far, from the third sight on.',
  }),
  setting('alert.state_words', stateRules, '', {
    label: 'Words for states',
    description:
      'What a word of a sender of this site says of its alert: `word = ends` (or `fires`, `no_data`, `off`), for one sender `name: word = ends`, several separated by a semicolon.',
  }),
  setting('alert.pagerduty_secret', senderSecret, null, {
    label: 'Secret of PagerDuty',
    description:
      'The secret of a V3 webhook of PagerDuty that sends alerts. With it each of its deliveries has to be signed, and needs no token.',
    secret: true,
  }),
  setting('alert.resource_labels', resourceRules, '', {
    label: 'Resource of an alert',
    description:
      'Which resource a label of this site names: `label=pattern -> kind:id`, several separated by a semicolon.',
  }),
]

const changesSettings = [
  setting('change.resource_labels', resourceRules, '', {
    label: 'Resource of a change',
    description:
      'Which resource a change is about: `label=pattern -> kind:id`, several separated by a semicolon. Every rule that fits counts.',
  }),
  setting('change.github_secret', senderSecret, null, {
    label: 'Secret of GitHub',
    description:
      'The secret of webhooks of GitHub. With it each of their deliveries has to be signed, and needs no token.',
    secret: true,
  }),
  setting('change.gitlab_token', senderSecret, null, {
    label: 'Token of GitLab',
    description:
      'The secret token of webhooks of GitLab. With it each of their deliveries has to carry it, and needs no other.',
    secret: true,
  }),
]

/** What each webhook is posted for. */
export const webhookNames = ['critical', 'approval', 'resolved', 'escalated', 'news'] as const
type WebhookName = (typeof webhookNames)[number]

/** The three settings of a webhook. */
const webhook = (name: WebhookName, when: string, description: string) => [
  setting(`webhook.${name}.url`, httpUrl, null, { label: `Webhook, ${when}`, description }),
  setting(`webhook.${name}.template`, oneOf(webhookTemplates), 'generic', {
    label: `Shape, ${when}`,
    description: 'Shape of that post.',
  }),
  setting(`webhook.${name}.secret`, webhookSecret, null, {
    label: `Signing secret, ${when}`,
    description: 'Signs it by Standard Webhooks.',
    secret: true,
  }),
]

const notificationsSettings = [
  setting('page.hold', pageHold, '0', {
    label: 'Page of a new incident waits',
    description:
      'Seconds (0 to 300) that the page of a new incident waits while a run looks and repairs, or rules, of which the first that fits holds: host:db-* = 0; critical = 120; 60.',
  }),
  setting('page.hold.*', pageHold, '0', {
    label: 'Page of a new incident waits, by type',
    description: 'The same for one incident type.',
  }),
  setting('page.night', nightHours, '22:00-07:00 UTC', {
    label: 'The night',
    description:
      'From when to when people sleep, by a zone: 22:00-07:00 Europe/Oslo. The wake budget counts in these hours, and the morning card goes out as they end.',
  }),
  setting('page.wake_budget', wakeBudget, 'off', {
    label: 'Questions that wake somebody, a night',
    description:
      'How many questions about incidents below critical wake somebody in a night; the others wait for the morning card. `off`: all of them wake.',
  }),
  setting('morning.card', oneOf(morningCards), 'news', {
    label: 'Morning card',
    description:
      'What goes out as the night ends: `news`, a card where the night had something to tell; `always`, also one line for an empty night; `off`, nothing. While it is off, no question waits for it.',
  }),
  setting('hand_over.at', handOverTimes, '', {
    label: 'Hand-over',
    description:
      'When the hand-over of five lines goes out, with the zone: 06:00 14:00 22:00 Europe/Oslo. Empty: never; `nightshift hand-over` shows it at any time.',
  }),
  setting('follow_up.days', whole(1, 60, 'days'), '3', {
    label: 'Date of a follow-up',
    description: 'Working days (Monday to Friday) until the follow-up of an incident that ended as mitigated is due.',
  }),
  setting('escalation.remind', seconds(10, 2_592_000), '14400', {
    label: 'Between two digests',
    description: 'Seconds between two digests of what people have and still fires.',
  }),
  setting('owner.lapse', seconds(60, 2_592_000), '43200', {
    label: 'Owner without an act',
    description: 'Seconds after the last act of the person who took an incident before it is given back.',
  }),
  ...webhook('critical', 'critical incident', 'Where to post when a critical incident is created.'),
  ...webhook('approval', 'approval requested', 'Where to post when a person is asked, and reminded.'),
  ...webhook('resolved', 'resolved', 'Where to post when an incident is resolved, and what its alert did after.'),
  ...webhook(
    'escalated',
    'escalated',
    'Where to post when an incident is handed to people: escalated, back, or still theirs.',
  ),
  ...webhook(
    'news',
    'news',
    'Where to post what asks nothing of anybody: what alerts of closed incidents did, and digests.',
  ),
]

const retentionSettings = [
  setting(retainedKinds.incidents.setting, daysOrKeep, 'keep', {
    label: 'Closed incidents',
    description:
      'Days after which a closed incident is removed with its log, alerts, approvals, messages and bodies, or keep, which is for ever. A tombstone stays.',
  }),
  setting(retainedKinds.deliveries.setting, daysOrKeep, String(retainedKinds.deliveries.days), {
    label: 'Messages that are over',
    description: 'Days after which a message that was sent, or given up, is removed, or keep.',
  }),
  setting(retainedKinds.alerts.setting, daysOrKeep, 'keep', {
    label: 'Ended alerts without an incident',
    description: 'Days after which an alert that ended and never belonged to an incident is removed, or keep.',
  }),
]

const listed: Record<SettingSection, Omit<Setting, 'section'>[]> = {
  Agent: agentSettings,
  Model: modelSettings,
  Budget: budgetSettings,
  Approvals: approvalsSettings,
  Alerts: alertsSettings,
  Changes: changesSettings,
  Notifications: notificationsSettings,
  Retention: retentionSettings,
}

/**
 * Keys of `platform_config` by section, with schema and default. Keys ending in `.*` stand for a
 * family. The API refuses any other key; one that plain SQL wrote is listed as unknown and has no
 * effect.
 */
export const settings: Setting[] = settingSections.flatMap((section) =>
  listed[section].map((each) => ({ ...each, section })),
)

/** The setting a key belongs to: the exact one first, then its family; null when there is none. */
export function settingOf(key: string): Setting | null {
  const exact = settings.find((candidate) => !candidate.family && candidate.key === key)
  if (exact) return exact
  return (
    settings.find((candidate) => {
      const prefix = candidate.key.slice(0, -1)
      return candidate.family && key.startsWith(prefix) && /^[a-z0-9_.]{1,64}$/.test(key.slice(prefix.length))
    }) ?? null
  )
}

/** The value a stored text stands for, or why it stands for none. */
export function parseSetting(key: string, text: string): { ok: true; value: unknown } | { ok: false; reason: string } {
  const found = settingOf(key)
  if (!found) return { ok: false, reason: `there is no setting ${key}` }
  const parsed = found.schema.safeParse(text)
  if (parsed.success) return { ok: true, value: parsed.data }
  return { ok: false, reason: nameFaults(parsed.error) }
}

type SettingSource = 'type' | 'global' | 'environment' | 'default'
export type EffectiveSetting = { key: string; value: unknown; source: SettingSource; problem: string | null }

/** Settings by tool and by sender: what stands behind their point is no type of incident. */
const byAnother = /^(approval\.|alert\.ends)/

/** The same setting of the type as it was spelled up to version 0.2. */
function formerKeys(name: string, type: string, stored: ReadonlyMap<string, string>): [string, SettingSource][] {
  if (byAnother.test(name)) return []
  const prefix = `${name}.`
  const named = [...stored.keys()].filter((key) => key.startsWith(prefix) && key !== prefix + type)
  return named.filter((key) => isType(key.slice(prefix.length), type)).map((key) => [key, 'type'])
}

/**
 * The value in force: by type, global, environment, default. A stored value that does not parse is
 * passed over and reported: a slip at night must not stop investigations.
 */
export function effectiveSetting(
  name: string,
  type: string | null,
  stored: ReadonlyMap<string, string>,
  environment: Record<string, string | undefined>,
): EffectiveSetting {
  let problem: string | null = null
  const candidates: [string, SettingSource][] = []
  if (type !== null) candidates.push([`${name}.${type}`, 'type'], ...formerKeys(name, type, stored))
  candidates.push([name, 'global'])
  for (const [key, source] of candidates) {
    const text = stored.get(key)
    if (text === undefined || settingOf(key) === null) continue
    const parsed = parseSetting(key, text)
    if (parsed.ok) return { key, value: parsed.value, source, problem }
    problem = `${key}: ${parsed.reason}`
  }
  const known = settingOf(type === null ? name : `${name}.${type}`) ?? settingOf(name)
  const fromEnvironment = known?.environment ? environment[known.environment] : undefined
  if (known && fromEnvironment !== undefined) {
    const parsed = known.schema.safeParse(fromEnvironment)
    if (parsed.success) return { key: known.environment ?? name, value: parsed.data, source: 'environment', problem }
  }
  const fallback = known?.fallback ?? null
  return {
    key: name,
    value: known && fallback !== null ? known.schema.parse(fallback) : null,
    source: 'default',
    problem,
  }
}
