import { z } from 'zod'
import { parseInvestigateFilter } from './admission.ts'
import { defaultExpirySeconds, maximumExpirySeconds } from './approval.ts'
import { webhookTemplates } from './escalation.ts'
import { parseResourceRules } from './explained-alert.ts'
import { parsePrices } from './price.ts'

/**
 * Every key of `platform_config`, the schema that parses its text, and its default. Keys ending in `.*` stand for a family.
 * A key that is not here is refused by the API; one that plain SQL put there is listed as unknown and has no effect.
 */
const whole = (minimum: number, maximum: number) => z.coerce.number().int().min(minimum).max(maximum)
const flag = z.enum(['true', 'false']).transform((text) => text === 'true')
const yesNo = z.enum(['yes', 'no']).transform((text) => text === 'yes')
const investigateFilter = z.string().transform((text, context) => {
  const parsed = parseInvestigateFilter(text)
  if (parsed.ok) return parsed.filter
  context.addIssue({ code: 'custom', message: parsed.reason })
  return z.NEVER
})
const resourceRules = z.string().transform((text, context) => {
  const parsed = parseResourceRules(text)
  if (parsed.ok) return parsed.rules
  context.addIssue({ code: 'custom', message: parsed.reason })
  return z.NEVER
})
const prices = z.string().transform((text, context) => {
  const parsed = parsePrices(text)
  if (parsed.ok) return parsed.rules
  context.addIssue({ code: 'custom', message: parsed.reason })
  return z.NEVER
})
const dollars = z
  .string()
  .regex(/^\d{1,7}(\.\d{1,2})?$/, 'takes dollars such as 25 or 2.50')
  .transform(Number)
/** A name of LLM_SERVERS_FILE; `default` is the model of LLM_BASE_URL. */
const declaredModel = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,39}$/, 'takes a name that LLM_SERVERS_FILE declares, or default')
const names = z.string().transform((text) =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean),
)
const httpUrl = z.url({ protocol: /^https?$/ })
/** Standard Webhooks: `whsec_` and at least 24 bytes in base64. */
const webhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/, 'must be whsec_ and at least 24 bytes in base64')
/** What a sender of webhooks and this server share. Visible ASCII, since it travels in a header or is typed into a form. */
const senderSecret = z.string().regex(/^[\x21-\x7e]{16,200}$/, 'takes 16 to 200 visible ASCII characters')

export type Setting = {
  key: string
  /** With a family, the part after the dot is an incident type, a tool or a trigger. */
  family: boolean
  schema: z.ZodType
  fallback: string | null
  secret: boolean
  /** The environment variable that sits between the global key and the default; null when there is none. */
  environment: string | null
  description: string
}

const setting = (
  key: string,
  schema: z.ZodType,
  fallback: string | null,
  description: string,
  more: { secret?: boolean; environment?: string } = {},
): Setting => ({
  key,
  family: key.endsWith('.*'),
  schema,
  fallback,
  secret: more.secret ?? false,
  environment: more.environment ?? null,
  description,
})

export const settings: Setting[] = [
  setting(
    'agent.system_prompt',
    z.string().min(1).max(20_000),
    null,
    'Replaces the system prompt; constraints and protocol are still appended.',
  ),
  setting('agent.system_prompt.*', z.string().min(1).max(20_000), null, 'The same for one incident type.'),
  setting(
    'agent.max_concurrent',
    whole(1, 100),
    '3',
    'Leaders that investigate at once: a slot for each type of incident. Of several slots one is kept for critical incidents.',
    { environment: 'AGENT_MAX_CONCURRENT' },
  ),
  setting('agent.max_followers', whole(1, 1_000), '15', 'Followers that investigate at once, over all types.'),
  setting('agent.concurrency.*', whole(1, 100), '5', 'Followers of this type that investigate at once.', {
    environment: 'AGENT_FOLLOWER_CONCURRENT',
  }),
  setting('agent.max_turns', whole(1, 200), '10', 'Turns before an investigation escalates.', {
    environment: 'LLM_MAX_TURNS',
  }),
  setting('agent.max_turns.*', whole(1, 200), '10', 'The same for one incident type.', {
    environment: 'LLM_MAX_TURNS',
  }),
  setting(
    'agent.model.leader',
    declaredModel,
    null,
    'The model that leaders are given to, by its name in LLM_SERVERS_FILE.',
  ),
  setting('agent.model.follower', declaredModel, null, 'The same for followers.'),
  setting(
    'agent.model.type.*',
    declaredModel,
    null,
    'The same for one incident type, for leaders and followers alike.',
  ),
  setting('agent.tools.*', names, null, 'Comma-separated tools offered for this type; all when not set.'),
  setting('agent.leader_wait', whole(0, 86_400), '300', 'Seconds followers wait while their leader awaits approval.'),
  setting(
    'agent.time_budget',
    whole(10, 86_400),
    '1800',
    'Seconds of work per investigation; waiting for approval is not counted.',
  ),
  setting('agent.token_budget', whole(1_000, 100_000_000), '400000', 'Tokens per investigation.'),
  setting(
    'agent.prices',
    prices,
    '',
    'Dollars per million tokens in and out, over the shipped list prices: `model = in / out`, several separated by a semicolon; `*` at the end fits any rest, and `model = 0` costs nothing.',
  ),
  setting(
    'agent.budget_day',
    dollars,
    null,
    'Dollars that models may cost a day (UTC). Notices at 80 and 100 %; then nothing is investigated until the day ends. Unset: no cap.',
  ),
  setting('agent.budget_month', dollars, null, 'The same for a month (UTC).'),
  setting(
    'agent.investigate',
    investigateFilter,
    'all',
    'Which incidents are investigated unasked: all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab.',
  ),
  setting('agent.investigate.*', investigateFilter, 'all', 'The same for one incident type.'),
  setting('alert.quiet', whole(0, 86_400), '120', 'Seconds without an alert before an incident may close as over.'),
  setting('alert.settle', whole(1, 604_800), '900', 'Seconds a firing alert gets to end after a repair.'),
  setting('alert.settle.*', whole(1, 604_800), '900', 'The same for one incident type.'),
  setting(
    'alert.settle_max',
    whole(1, 2_592_000),
    '14400',
    'Seconds after a repair at which an alert that still fires is escalated.',
  ),
  setting('alert.settle_max.*', whole(1, 2_592_000), '14400', 'The same for one incident type.'),
  setting(
    'alert.resource_labels',
    resourceRules,
    '',
    'Which resource a label of this site names: `label=pattern -> kind:id`, several separated by a semicolon.',
  ),
  setting(
    'change.resource_labels',
    resourceRules,
    '',
    'Which resource a change is about: `label=pattern -> kind:id`, several separated by a semicolon. Every rule that fits counts.',
  ),
  setting(
    'change.github_secret',
    senderSecret,
    null,
    'The secret of webhooks of GitHub. With it each of their deliveries has to be signed, and needs no token.',
    { secret: true },
  ),
  setting(
    'change.gitlab_token',
    senderSecret,
    null,
    'The secret token of webhooks of GitLab. With it each of their deliveries has to carry it, and needs no other.',
    { secret: true },
  ),
  setting(
    'alert.heartbeats',
    names,
    'Watchdog, DeadMansSwitch',
    'Names of alerts that always fire: they open no incident, their silence does.',
  ),
  setting(
    'alert.heartbeat_silence',
    whole(60, 2_592_000),
    null,
    'Seconds without a heartbeat before it counts as stopped. Unset: twice the longest gap so far, from the third sight on.',
  ),
  setting(
    'alert.stale',
    whole(60, 2_592_000),
    '86400',
    'Seconds without a repeat before an alert of a sender without ends counts as unknown.',
  ),
  setting(
    'alert.ends.*',
    yesNo,
    null,
    'Whether this sender (alertmanager, generic) says when an alert ends: yes or no.',
  ),
  setting(
    'escalation.remind',
    whole(10, 2_592_000),
    '14400',
    'Seconds between two digests of what people have and still fires.',
  ),
  setting(
    'owner.lapse',
    whole(60, 2_592_000),
    '43200',
    'Seconds after the last act of the person who took an incident before it is given back.',
  ),
  setting('agent.paused', flag, 'false', 'No new claims and no writes; reads go on.'),
  setting(
    'approval.expiry.*',
    whole(1, maximumExpirySeconds),
    String(defaultExpirySeconds),
    'Seconds a person may take to decide about this tool. Unset, a command on a device has 1800: its rehearsal ages.',
  ),
  setting(
    'approval.risk.*',
    z.enum(['medium', 'high', 'critical']),
    null,
    'Raises the risk class of this tool; a lower class than its own has no effect.',
  ),
  setting(
    'approval.required.*',
    whole(1, 5),
    '1',
    'People who must agree to this tool, if more than its risk asks for.',
  ),
  setting('webhook.critical.url', httpUrl, null, 'Where to post when a critical incident is created.'),
  setting('webhook.critical.template', z.enum(webhookTemplates), 'generic', 'Shape of that post.'),
  setting('webhook.critical.secret', webhookSecret, null, 'Signs it by Standard Webhooks.', {
    secret: true,
  }),
  setting('webhook.approval.url', httpUrl, null, 'Where to post when a person is asked, and reminded.'),
  setting('webhook.approval.template', z.enum(webhookTemplates), 'generic', 'Shape of that post.'),
  setting('webhook.approval.secret', webhookSecret, null, 'Signs it by Standard Webhooks.', {
    secret: true,
  }),
  setting(
    'webhook.resolved.url',
    httpUrl,
    null,
    'Where to post when an incident is resolved, and what its alert did after.',
  ),
  setting('webhook.resolved.template', z.enum(webhookTemplates), 'generic', 'Shape of that post.'),
  setting('webhook.resolved.secret', webhookSecret, null, 'Signs it by Standard Webhooks.', {
    secret: true,
  }),
  setting('webhook.escalated.url', httpUrl, null, 'Where to post when an incident is escalated.'),
  setting('webhook.escalated.template', z.enum(webhookTemplates), 'generic', 'Shape of that post.'),
  setting('webhook.escalated.secret', webhookSecret, null, 'Signs it by Standard Webhooks.', {
    secret: true,
  }),
]

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
  return { ok: false, reason: parsed.error.issues.map((issue) => issue.message).join('; ') }
}

type SettingSource = 'type' | 'global' | 'environment' | 'default'
export type EffectiveSetting = { key: string; value: unknown; source: SettingSource; problem: string | null }

/**
 * The value in force: type, global, environment, default. A stored value that does not parse is passed over and reported, for
 * a typing mistake at night must not stop investigations.
 */
export function effectiveSetting(
  name: string,
  type: string | null,
  stored: ReadonlyMap<string, string>,
  environment: Record<string, string | undefined>,
): EffectiveSetting {
  let problem: string | null = null
  const candidates: [string, SettingSource][] = []
  if (type !== null) candidates.push([`${name}.${type}`, 'type'])
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
