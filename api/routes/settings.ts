import { z } from '@hono/zod-openapi'
import { type ConfigRow, configRevisions, configRow, configRows, putConfig, readSettings } from '../../db/settings.ts'
import { incidentType } from '../../domain/incident.ts'
import { parseSetting, type Setting, settingOf, settings } from '../../domain/setting.ts'
import {
  type StoredSetting,
  settingDescription,
  settingInForce,
  settingRevision,
  storedSetting,
} from '../../domain/setting-row.ts'
import type { ApiDeps } from '../deps.ts'
import { numberCursor, page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { environmentEndpoint, tag } from './environment.ts'
import { testWebhookEndpoint } from './webhook-test.ts'

const params = z.object({ key: z.string().min(1).max(128) })
const mask = '••••••'
/** The version of a setting: `"3"`, weak or strong, or the number alone; `*` is any version. */
const versionShape = /^(?:\*|(?:W\/)?"?(\d{1,9})"?)$/

const example: StoredSetting = {
  key: 'agent.max_turns',
  value: '12',
  version: 2,
  updatedAt: '2026-11-20T16:00:00.000000Z',
  updatedBy: 'user:admin',
  reason: 'Disk incidents need a few more turns',
  description: 'Turns before an investigation escalates.',
  secret: false,
  locked: false,
  problem: null,
}

const listSettingsEndpoint = endpoint({
  method: 'get',
  path: '/config',
  permission: 'read_config',
  tag,
  summary: 'All settings and their stored values',
  description:
    'Secrets are masked. Settings come by section, each with a label and the unit of its number. A stored key without a setting is listed with its problem and has no effect.',
  answer: pageOf(storedSetting).extend({
    settings: z.array(settingDescription),
  }),
  example: {
    items: [example],
    nextCursor: null,
    settings: [
      {
        key: 'agent.max_turns',
        section: 'Agent',
        label: 'Turns of an investigation',
        unit: 'turns',
        description: 'Turns before an investigation escalates.',
        default: '10',
        environment: 'LLM_MAX_TURNS',
        secret: false,
      },
    ],
  },
  async run({ scope }, { environment }) {
    return {
      items: (await configRows(scope)).map((row) => toStoredSetting(row, environment)),
      nextCursor: null,
      settings: settings.map(({ key, section, label, unit, description, fallback, environment, secret }) => ({
        key,
        section,
        label,
        unit,
        description,
        default: fallback,
        environment,
        secret,
      })),
    }
  },
})

const effectiveSettingsEndpoint = endpoint({
  method: 'get',
  path: '/config/effective',
  permission: 'read_config',
  tag,
  summary: 'Every setting with the value in force and its origin',
  description: 'With `type`, the values for an investigation of that incident type.',
  query: z.object({ type: incidentType.optional() }),
  answer: pageOf(settingInForce),
  example: {
    items: [{ name: 'agent.max_turns', key: 'agent.max_turns', value: 12, source: 'global', problem: null }],
    nextCursor: null,
  },
  async run({ query: { type } }, { db, environment }) {
    const reader = await readSettings(db, environment)
    const names = new Map<string, { typed: boolean; secret: boolean }>()
    for (const { key, family, secret } of settings) {
      const name = family ? key.slice(0, -2) : key
      const typed = family && name.startsWith('agent.')
      names.set(name, { typed: typed || (names.get(name)?.typed ?? false), secret })
    }
    const items = [...names].map(([name, { typed, secret }]) => {
      const effective = reader.effective(name, typed ? (type ?? null) : null)
      return { name, ...effective, value: secret && effective.value !== null ? mask : effective.value }
    })
    return { items, nextCursor: null }
  },
})

const getSettingEndpoint = endpoint({
  method: 'get',
  path: '/config/{key}',
  permission: 'read_config',
  tag,
  summary: 'One stored value; `ETag` is its version',
  params,
  answer: storedSetting,
  example,
  problems: [404],
  async run({ scope, params: { key }, c }, { environment }) {
    const row = await configRow(scope, key)
    if (!row) throw notFound(`stored value of ${key}`)
    c.header('etag', `"${row.version}"`)
    return toStoredSetting(row, environment)
  },
})

const setSettingEndpoint = endpoint({
  method: 'put',
  path: '/config/{key}',
  permission: 'write_config',
  tag,
  summary: 'Sets a value',
  description:
    'With `If-Match: "<version>"` the value must still have that version (`"0"`: nothing is set), else 412. Takes effect at the next cycle.',
  params,
  headers: z.object({ 'if-match': z.string().regex(versionShape).optional() }),
  body: z.strictObject({ value: z.string().max(20_000), reason: z.string().max(500).nullable().default(null) }),
  bodyExample: { value: '12', reason: 'Disk incidents need a few more turns' },
  answer: storedSetting,
  example,
  problems: [404, 409, 412],
  async run({ scope, params: { key }, body: { value, reason }, actor, c }, { db, environment }) {
    const setting = settingOf(key)
    if (!setting) throw notFound(`setting ${key}`)
    if (isLocked(setting, environment)) {
      throw new Problem(409, 'LOCKED', `${key} is set by the environment variable ${setting.environment}.`)
    }
    const parsed = parseSetting(key, value)
    if (!parsed.ok) {
      const errors = [{ in: 'body', field: 'value', message: parsed.reason }]
      throw new Problem(422, 'INVALID', `value: ${parsed.reason}`, { fields: { errors } })
    }
    const row = await putConfig(db, { key, value, actor, reason, ifVersion: versionOf(c.req.header('if-match')) })
    if (!row) {
      const now = (await configRow(scope, key))?.version ?? 0
      const detail = `Somebody changed ${key}, which is now at version ${now}. Read the setting again, then decide.`
      throw new Problem(412, 'VERSION_CHANGED', detail, { fields: { version: now } })
    }
    c.header('etag', `"${row.version}"`)
    return toStoredSetting(row, environment)
  },
})

const listRevisionsEndpoint = endpoint({
  method: 'get',
  path: '/config/{key}/revisions',
  permission: 'read_config',
  tag,
  summary: "All changes of a setting's value, newest first",
  params,
  query: z.object({ limit: pageQuery.limit, cursor: numberCursor }),
  answer: pageOf(settingRevision),
  example: {
    items: [
      {
        version: 2,
        oldValue: '10',
        newValue: '12',
        actor: 'user:admin',
        reason: example.reason,
        at: example.updatedAt,
      },
    ],
    nextCursor: null,
  },
  async run({ scope, params: { key }, query: { limit, cursor } }) {
    const rows = await configRevisions(scope, key, { before: cursor ?? null, limit: limit + 1 })
    const hide = (text: string | null) => (text !== null && isSecret(key) ? mask : text)
    const masked = rows.map((row) => ({ ...row, oldValue: hide(row.oldValue), newValue: hide(row.newValue) }))
    return page(masked, limit, (last) => last.version)
  },
})

/** Whether a key's value may be secret. An unknown key may have been meant for a secret. */
function isSecret(key: string): boolean {
  return settingOf(key)?.secret ?? /secret|token|password|key/i.test(key)
}

function isLocked(setting: Setting, environment: ApiDeps['environment']): boolean {
  const { key, environment: name } = setting
  return name !== null && !key.startsWith('agent.') && environment[name] !== undefined
}

function toStoredSetting(row: ConfigRow, environment: ApiDeps['environment']): StoredSetting {
  const setting = settingOf(row.key)
  const secret = isSecret(row.key)
  const parsed = parseSetting(row.key, row.value)
  return {
    ...row,
    value: secret ? mask : row.value,
    description: setting?.description ?? null,
    secret,
    locked: setting !== null && isLocked(setting, environment),
    problem: parsed.ok ? null : parsed.reason,
  }
}

function versionOf(ifMatch: string | undefined): number | null {
  if (ifMatch === undefined || ifMatch === '*') return null
  const [, version] = versionShape.exec(ifMatch) ?? []
  if (version === undefined) throw new Problem(422, 'INVALID', 'If-Match: send the version, as "3"')
  return Number(version)
}

export const configRoutes = [
  listSettingsEndpoint,
  effectiveSettingsEndpoint,
  environmentEndpoint,
  getSettingEndpoint,
  testWebhookEndpoint,
  setSettingEndpoint,
  listRevisionsEndpoint,
]
