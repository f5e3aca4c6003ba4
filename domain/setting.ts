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

/** Sections of the settings page, in order. */
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
  /** A short name of the setting. */
  label: string
  /**
   * Whether this is a family of settings. In a key of a family, the part after the dot is an
   * incident type, a tool or a sender.
   */
  family: boolean
  schema: z.ZodType
  /** The unit of the setting's number; null for a text. */
  unit: SettingUnit | null
  fallback: string | null
  secret: boolean
  /**
   * The environment variable whose value is used before the default if there is no global value;
   * null if the setting has no variable.
   */
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
    description: 'No new investigations and no writes; reads continue.',
  }),
  setting('agent.investigate', investigateFilter, 'all', {
    label: 'Investigate automatically',
    description:
      'Which incidents are investigated automatically: all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab. The setting is checked when an incident opens and again when its investigation begins.',
  }),
  setting('agent.investigate.*', investigateFilter, 'all', {
    label: 'Investigate automatically, by type',
    description: 'Like `agent.investigate`, for one incident type.',
  }),
  setting('agent.max_concurrent', whole(1, 100, 'investigations'), '3', {
    label: 'Leaders at once',
    description:
      'Leaders that investigate at the same time: one slot for each type of incident. One of several slots is kept for critical incidents.',
    environment: 'AGENT_MAX_CONCURRENT',
  }),
  setting('agent.max_critical', whole(0, 100, 'investigations'), '12', {
    label: 'Critical incidents at once, in addition',
    description:
      'Investigations of critical incidents at the same time, in addition to the other limits, so that many warnings do not make them wait.',
  }),
  setting('agent.max_questions', whole(1, 100, 'investigations'), '2', {
    label: 'Questions at once',
    description:
      'Questions of people that are investigated at the same time; they do not use slots of incidents and go first.',
  }),
  setting('agent.max_followers', whole(1, 1_000, 'investigations'), '15', {
    label: 'Followers at once, all types',
    description: 'Followers of all types that investigate at the same time.',
  }),
  setting('agent.concurrency.*', whole(1, 100, 'investigations'), '5', {
    label: 'Followers at once, one type',
    description: 'Followers of this type that investigate at the same time.',
    environment: 'AGENT_FOLLOWER_CONCURRENT',
  }),
  setting('agent.leader_wait', seconds(0, 86_400), '300', {
    label: 'Followers wait for their leader',
    description: 'Seconds that followers wait while their leader awaits approval.',
  }),
  setting('agent.max_turns', whole(1, 200, 'turns'), '10', {
    label: 'Turns of an investigation',
    description: 'Turns before an investigation escalates.',
    environment: 'LLM_MAX_TURNS',
  }),
  setting('agent.max_turns.*', whole(1, 200, 'turns'), '10', {
    label: 'Turns of an investigation, by type',
    description: 'Like `agent.max_turns`, for one incident type.',
    environment: 'LLM_MAX_TURNS',
  }),
  setting('agent.trust', oneOf(trustLevels), 'propose', {
    label: 'Trust of a new pair',
    description:
      'The trust level of a tool in incidents of a type for which nobody has set one: shadow, propose or act. A level on the page *Trust* wins.',
    environment: 'AGENT_TRUST',
  }),
  setting('agent.footprint', resourcePatterns, '', {
    label: 'What Nightshift runs on',
    description:
      'Resources that Nightshift itself runs on. Nightshift finds the resources of its database, Temporal and model by their addresses; list the other resources here as `KIND:ID`, separated by blanks, with `*` for any characters. Every change to them is critical.',
  }),
  setting('agent.tools.*', names, null, {
    label: 'Tools offered, by type',
    description: 'Tools that the model is offered for this type, separated by commas. Unset: all tools.',
  }),
  setting('agent.system_prompt', prompt, null, {
    label: 'System prompt',
    description: 'Replaces the system prompt; constraints and protocol are still appended.',
  }),
  setting('agent.system_prompt.*', prompt, null, {
    label: 'System prompt, by type',
    description: 'Like `agent.system_prompt`, for one incident type.',
  }),
]

const modelSettings = [
  setting('agent.model.leader', declaredModel, null, {
    label: 'Model of leaders',
    description: 'The model that investigates leaders of groups, by its name in LLM_SERVERS_FILE.',
  }),
  setting('agent.model.follower', declaredModel, null, {
    label: 'Model of followers',
    description: 'The model that investigates followers of groups, by its name in LLM_SERVERS_FILE.',
  }),
  setting('agent.model.type.*', declaredModel, null, {
    label: 'Model, by type',
    description: 'The model that investigates incidents of one type, whether leaders or followers of groups.',
  }),
]

const budgetSettings = [
  setting('agent.time_budget', seconds(10, 86_400), '1800', {
    label: 'Time of an investigation',
    description: 'Seconds that an investigation may work. Time in which it waits for an approval is not counted.',
  }),
  setting('agent.token_budget', whole(1_000, 100_000_000, 'tokens'), '400000', {
    label: 'Tokens of an investigation',
    description: 'Tokens that an investigation may use.',
  }),
  setting('agent.budget_day', dollars, null, {
    label: 'Budget of a day',
    description:
      'Dollars that models may cost a day (UTC). People are notified at 80 and 100 %; at 100 % nothing is investigated until the day ends. Unset: no limit.',
  }),
  setting('agent.budget_month', dollars, null, {
    label: 'Budget of a month',
    description:
      'Dollars that models may cost a month (UTC). People are notified at 80 and 100 %; at 100 % nothing is investigated until the month ends. Unset: no limit.',
  }),
  setting('agent.prices', prices, '', {
    label: 'Prices of models',
    description:
      'Dollars per million tokens in and out, instead of the shipped list prices: `model = in / out`, several separated by a semicolon; `*` at the end matches any rest, and `model = 0` costs nothing.',
  }),
]

const approvalsSettings = [
  setting('approval.expiry.*', seconds(1, maxExpirySeconds), String(defaultExpirySeconds), {
    label: 'Time to decide, by tool',
    description:
      'Seconds that a person has to decide about this tool. Unset: 1800 for a command on a device, because the dry run becomes outdated.',
  }),
  setting('approval.risk.*', oneOf(['medium', 'high', 'critical']), null, {
    label: 'Minimum risk, by tool',
    description: 'Raises the risk of this tool; a lower risk than its own has no effect.',
  }),
  setting('approval.on_call', onCallRules, '', {
    label: 'People to ask, in order',
    description:
      'Rules separated by semicolons, such as `HOURS ZONE KIND:ID -> PERSON PERSON`; the parts before the arrow are optional. The first rule that matches applies. Its first person is notified of a question at once, the second after 5 minutes, the third after 10. Without rules, or if PagerDuty gets the question, everybody who may decide is notified at once.',
  }),
  setting('approval.required.*', whole(1, 5, 'people'), '1', {
    label: 'Approvals required, by tool',
    description: 'People who must approve this tool, if more than its risk requires.',
  }),
]

const alertsSettings = [
  setting('alert.quiet', seconds(0, 86_400), '120', {
    label: 'Quiet before an incident closes',
    description: 'Seconds without an alert before an incident may close.',
  }),
  setting('alert.settle', seconds(1, 604_800), '900', {
    label: 'Time to end after a repair',
    description: 'Seconds that an alert has to end after a repair; a critical alert is escalated after that time.',
  }),
  setting('alert.settle.*', seconds(1, 604_800), '900', {
    label: 'Time to end after a repair, by type',
    description: 'Like `alert.settle`, for one incident type.',
  }),
  setting('alert.settle_max', seconds(1, 2_592_000), '14400', {
    label: 'Escalate after a repair',
    description: 'Seconds after a repair at which an alert that still fires is escalated.',
  }),
  setting('alert.settle_max.*', seconds(1, 2_592_000), '14400', {
    label: 'Escalate after a repair, by type',
    description: 'Like `alert.settle_max`, for one incident type.',
  }),
  setting('alert.stale', seconds(60, 2_592_000), '86400', {
    label: 'Alert unknown without a repeat',
    description:
      'If a sender does not report when alerts end: seconds after which the state of an alert that was not repeated is unknown.',
  }),
  setting('alert.ends.*', yesNo, null, {
    label: 'Reports ends of alerts, by sender',
    description: 'Whether this sender (alertmanager, generic) reports the end of an alert: yes or no.',
  }),
  setting('alert.heartbeats', names, 'Watchdog, DeadMansSwitch', {
    label: 'Heartbeats',
    description:
      'Names of alerts that always fire (heartbeats). These alerts open no incident; an incident opens when they stop.',
  }),
  setting('alert.heartbeat_silence', seconds(60, 2_592_000), null, {
    label: 'Silence of a heartbeat',
    description:
      'Seconds after its last alert at which a heartbeat counts as stopped. Unset: twice the longest gap so far, from the third alert on.',
  }),
  setting('alert.state_words', stateRules, '', {
    label: 'Meaning of states',
    description:
      'What a state word of a sender means: `word = ends` (or `fires`, `no_data`, `off`), for one sender `name: word = ends`, several separated by a semicolon.',
  }),
  setting('alert.pagerduty_secret', senderSecret, null, {
    label: 'Secret of PagerDuty',
    description:
      'The secret of a PagerDuty V3 webhook that sends alerts. If the secret is set, each delivery must be signed and needs no token.',
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
      'Which resource a change is about: `label=pattern -> kind:id`, several separated by a semicolon. Every matching rule counts.',
  }),
  setting('change.github_secret', senderSecret, null, {
    label: 'Secret of GitHub',
    description:
      'The secret of GitHub webhooks. If the secret is set, each delivery must be signed and needs no token.',
    secret: true,
  }),
  setting('change.gitlab_token', senderSecret, null, {
    label: 'Token of GitLab',
    description:
      'The secret token of GitLab webhooks. If the token is set, each delivery must carry it and needs no other token.',
    secret: true,
  }),
]

/** Names of the webhooks, one for each event. */
export const webhookNames = ['critical', 'approval', 'resolved', 'escalated', 'news'] as const
type WebhookName = (typeof webhookNames)[number]

/** The three settings of a webhook. */
const webhook = (name: WebhookName, when: string, description: string) => [
  setting(`webhook.${name}.url`, httpUrl, null, { label: `Webhook, ${when}`, description }),
  setting(`webhook.${name}.template`, oneOf(webhookTemplates), 'generic', {
    label: `Shape, ${when}`,
    description: 'Format of the message.',
  }),
  setting(`webhook.${name}.secret`, webhookSecret, null, {
    label: `Signing secret, ${when}`,
    description: 'Signs the message by Standard Webhooks.',
    secret: true,
  }),
]

const notificationsSettings = [
  setting('page.hold', pageHold, '0', {
    label: 'Page of a new incident waits',
    description:
      'Seconds (0 to 300) that the page of a new incident waits while a run investigates and repairs. Or rules, of which the first matching one counts: host:db-* = 0; critical = 120; 60.',
  }),
  setting('page.hold.*', pageHold, '0', {
    label: 'Page of a new incident waits, by type',
    description: 'Like `page.hold`, for one incident type.',
  }),
  setting('page.night', nightHours, '22:00-07:00 UTC', {
    label: 'The night',
    description:
      'When people sleep, with a time zone: 22:00-07:00 Europe/Oslo. The wake budget counts in these hours, and the morning card is sent at their end.',
  }),
  setting('page.wake_budget', wakeBudget, 'off', {
    label: 'Questions that wake somebody, a night',
    description:
      'How many approvals below critical may wake somebody in a night; the others wait for the morning card. `off`: every approval wakes somebody.',
  }),
  setting('morning.card', oneOf(morningCards), 'news', {
    label: 'Morning card',
    description:
      'What is sent at the end of the night: `news`, a card if anything happened; `always`, also one line for an empty night; `off`, nothing. If the card is off, no approval waits for it.',
  }),
  setting('hand_over.at', handOverTimes, '', {
    label: 'Hand-over',
    description:
      'When the hand-over of five lines is sent, with the time zone: 06:00 14:00 22:00 Europe/Oslo. Empty: never; `nightshift hand-over` shows it at any time.',
  }),
  setting('follow_up.days', whole(1, 60, 'days'), '3', {
    label: 'Date of a follow-up',
    description: 'Working days (Monday to Friday) until the follow-up of an incident that ended as mitigated is due.',
  }),
  setting('escalation.remind', seconds(10, 2_592_000), '14400', {
    label: 'Between two digests',
    description: 'Seconds between two digests of incidents that are left to people and whose alerts still fire.',
  }),
  setting('owner.lapse', seconds(60, 2_592_000), '43200', {
    label: 'Inactive owner',
    description: 'Seconds after the last action of the owner until an incident is given back.',
  }),
  ...webhook('critical', 'critical incident', 'Address for messages about new critical incidents.'),
  ...webhook('approval', 'approval requested', 'Address for approvals and their reminders.'),
  ...webhook('resolved', 'resolved', 'Address for messages about resolved incidents and their alerts.'),
  ...webhook(
    'escalated',
    'escalated',
    'Address for incidents that people must handle: escalated, reopened, or still open.',
  ),
  ...webhook('news', 'news', 'Address for news that needs no answer: alerts of closed incidents, and digests.'),
]

const retentionSettings = [
  setting(retainedKinds.incidents.setting, daysOrKeep, 'keep', {
    label: 'Closed incidents',
    description:
      'Days after which a closed incident is removed with its log, alerts, approvals, messages and texts, or keep (forever). A tombstone stays.',
  }),
  setting(retainedKinds.deliveries.setting, daysOrKeep, String(retainedKinds.deliveries.days), {
    label: 'Finished messages',
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
 * All settings by section, with schema and default. The keys of settings are those of the table
 * `platform_config`. A key that ends in `.*` is a family. The API refuses any other key. If SQL
 * stored an unknown key, it is listed as unknown and has no effect.
 */
export const settings: Setting[] = settingSections.flatMap((section) =>
  listed[section].map((each) => ({ ...each, section })),
)

/** Finds the setting of a key: by the whole key, else by its family; null if there is none. */
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

/** Parses a stored text, or returns why it is invalid. */
export function parseSetting(key: string, text: string): { ok: true; value: unknown } | { ok: false; reason: string } {
  const found = settingOf(key)
  if (!found) return { ok: false, reason: `there is no setting ${key}` }
  const parsed = found.schema.safeParse(text)
  if (parsed.success) return { ok: true, value: parsed.data }
  return { ok: false, reason: nameFaults(parsed.error) }
}

type SettingSource = 'type' | 'global' | 'environment' | 'default'
export type EffectiveSetting = { key: string; value: unknown; source: SettingSource; problem: string | null }

/** Families of settings by tool or sender: in their keys, no incident type follows the dot. */
const byAnother = /^(approval\.|alert\.ends)/

/** Lists stored keys of a setting with older spellings of the incident type (up to version 0.2). */
function formerKeys(name: string, type: string, stored: ReadonlyMap<string, string>): [string, SettingSource][] {
  if (byAnother.test(name)) return []
  const prefix = `${name}.`
  const named = [...stored.keys()].filter((key) => key.startsWith(prefix) && key !== prefix + type)
  return named.filter((key) => isType(key.slice(prefix.length), type)).map((key) => [key, 'type'])
}

/**
 * Finds the effective value of a setting: by type, global, from the environment, or the default. A
 * stored value that cannot be parsed is skipped and reported, because a typo must not stop
 * investigations.
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
