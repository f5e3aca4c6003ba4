import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { listEnvironment, withoutCredentials } from '../../config/environment.ts'
import {
  type ConfigError,
  modelsOf,
  oidcSettings,
  proxmoxSettings,
  readConfig,
  secrets,
  settingNames,
  slackSettings,
  temporalSettings,
} from '../../config/settings.ts'
import { formatWithUnit } from '../../domain/format.ts'
import { settingSections, settings } from '../../domain/setting.ts'
import { newAuthority } from '../support/temporal-proxy.ts'

function problems(environment: Record<string, string>, requires: Parameters<typeof readConfig>[1] = []): string[] {
  try {
    readConfig(environment, requires)
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

test('all errors are reported at once, each with its setting', () => {
  const found = problems(
    {
      AGENT_ENABLED: 'true',
      QUEUE_INTERVAL_SECONDS: 'soon',
      PORT: '99999',
      CORE_API_URL: 'ftp://x',
      LLM_PROTOCOL: 'smoke',
    },
    ['DATABASE_URL'],
  )
  for (const name of [
    'LLM_BASE_URL',
    'AGENT_API_KEY',
    'QUEUE_INTERVAL_SECONDS',
    'PORT',
    'CORE_API_URL',
    'LLM_PROTOCOL',
    'DATABASE_URL',
  ]) {
    expect(found.filter((problem) => problem.includes(name))).toHaveLength(1)
  }
})

test('the agent is off by default and needs a model and a key only when it is on', () => {
  expect(readConfig({}).AGENT_ENABLED).toBe(false)
  expect(problems({ AGENT_ENABLED: 'true' })).toHaveLength(2)
  expect(problems({ AGENT_ENABLED: 'true', LLM_BASE_URL: 'http://dgx:8000', AGENT_API_KEY: 'k' })).toEqual([])
})

test('the documentation has every setting with its default, and marks secrets', () => {
  const text = readFileSync('docs/reference/configuration.md', 'utf8')
  const table = text.slice(text.indexOf('## Environment'), text.indexOf('## `platform_config`'))
  const rows = [...table.matchAll(/^\| `([A-Z_]+)` \| (.*?) \| ?(.*) \|$/gm)]
  // The C library reads that one, not we.
  const told = rows.filter(([, name]) => name !== 'MALLOC_ARENA_MAX' && name !== 'NODE_OPTIONS')
  expect(told.map(([, name]) => name).toSorted()).toEqual([...settingNames].toSorted())
  const defaults = Object.entries(readConfig({})).filter(([, value]) => value !== undefined && value !== '')
  const toldDefaults = told.filter(([, , text]) => text).map(([, name, text]) => [name, text?.replaceAll('`', '')])
  expect(Object.fromEntries(toldDefaults)).toEqual(
    Object.fromEntries(defaults.map(([name, value]) => [name, String(value)])),
  )
  const toldSecrets = told.filter(([, , , meaning]) => meaning?.includes('(secret)'))
  expect(toldSecrets.map(([, name]) => name).toSorted()).toEqual([...secrets].toSorted())
  for (const name of secrets) expect(text).toContain(`\`${name}_FILE\``)
})

test('a secret may come from a file, but not from two places', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'key')
  writeFileSync(file, 's3cret\n')
  expect(readConfig({ AGENT_API_KEY_FILE: file }).AGENT_API_KEY).toBe('s3cret')
  expect(problems({ AGENT_API_KEY_FILE: file, AGENT_API_KEY: 'x' })[0]).toContain('AGENT_API_KEY_FILE')
  expect(problems({ AGENT_API_KEY_FILE: '/nowhere' })[0]).toContain('/nowhere')
})

test('no message repeats the value of a secret', () => {
  const found = problems({ DATABASE_URL: 'mysql://root:hunter2@db/x', PORT: 'x' })
  expect(found.join()).not.toContain('hunter2')
})

const provider = {
  OIDC_ISSUER: 'https://id.example.com/realms/ops',
  OIDC_CLIENT_ID: 'nightshift',
  OIDC_ROLE_MAP: 'sre-admins=admin, sre=approver',
  PUBLIC_URL: 'https://nightshift.example.com',
}

test('a provider needs all of its settings, and its groups give roles of people alone', () => {
  expect(oidcSettings(readConfig(provider))).toMatchObject({
    issuer: provider.OIDC_ISSUER,
    scopes: 'openid profile email',
    groupsClaim: 'groups',
    roles: { 'sre-admins': 'admin', sre: 'approver' },
  })
  expect(oidcSettings(readConfig({}))).toBeNull()
  expect(problems({ OIDC_ISSUER: provider.OIDC_ISSUER })).toHaveLength(3)
  for (const map of ['sre=agent', 'sre=ingest', 'sre', '=admin', 'sre=root', ',']) {
    expect([map, problems({ ...provider, OIDC_ROLE_MAP: map }).length > 0]).toEqual([map, true])
  }
  expect(problems({ ...provider, OIDC_SCOPES: 'profile' })).toEqual(['OIDC_SCOPES: must hold openid'])
})

test('names of groups may contain commas and equal signs, like those of LDAP', () => {
  const map = 'CN=sre,OU=ops=approver; CN=admins,OU=ops=admin'
  expect({ ...readConfig({ ...provider, OIDC_ROLE_MAP: map }).OIDC_ROLE_MAP }).toEqual({
    'CN=sre,OU=ops': 'approver',
    'CN=admins,OU=ops': 'admin',
  })
})

test('a provider is accepted over TLS, or on this machine', () => {
  const from = (issuer: string) => problems({ ...provider, OIDC_ISSUER: issuer })
  expect(['http://127.0.0.1:9000', 'http://localhost/x', 'http://[::1]:1'].flatMap(from)).toEqual([])
  for (const issuer of ['http://id.example.com', 'http://localhost.example.com', 'http://127.0.0.1.example.com']) {
    expect([issuer, from(issuer)]).toEqual([issuer, ['OIDC_ISSUER must be https, unless it is on this machine']])
  }
})

const slack = {
  SLACK_BOT_TOKEN: 'xoxb-of-the-bot',
  SLACK_SIGNING_SECRET: '0123456789abcdef0123456789abcdef',
  SLACK_CHANNEL: 'C0123456789',
  PUBLIC_URL: 'https://nightshift.example.com',
}

test('Slack with a bot needs all of its settings, and one message names the missing ones', () => {
  expect(slackSettings(readConfig(slack))).toEqual({
    botToken: slack.SLACK_BOT_TOKEN,
    signingSecret: slack.SLACK_SIGNING_SECRET,
    channel: 'C0123456789',
    apiUrl: 'https://slack.com/api',
  })
  expect(slackSettings(readConfig({}))).toBeNull()
  expect(problems({ SLACK_BOT_TOKEN: 'xoxb-secret' })).toEqual([
    'SLACK_BOT_TOKEN is set, and Slack also needs SLACK_SIGNING_SECRET, SLACK_CHANNEL, PUBLIC_URL',
  ])
  expect(problems({ ...slack, SLACK_SIGNING_SECRET: '' })).toEqual([
    'SLACK_BOT_TOKEN is set, and Slack also needs SLACK_SIGNING_SECRET',
  ])
  expect(problems({ ...slack, SLACK_API_URL: 'http://chat.example' })[0]).toContain('SLACK_API_URL must be https')
  const file = join(mkdtempSync(join(tmpdir(), 'nightshift-')), 'token')
  writeFileSync(file, 'xoxb-of-a-file\n')
  const { SLACK_BOT_TOKEN: _, ...rest } = slack
  expect(slackSettings(readConfig({ ...rest, SLACK_BOT_TOKEN_FILE: file }))?.botToken).toBe('xoxb-of-a-file')
})

const proxmox = {
  PROXMOX_URL: 'https://pve1:8006, https://pve2:8006',
  PROXMOX_TOKEN: 'nightshift@pve!core=11112222-3333-4444-5555-666677778888',
}

test('a Proxmox VE cluster needs an address and a token, and is the only platform', () => {
  expect(proxmoxSettings(readConfig(proxmox))).toEqual({
    urls: ['https://pve1:8006', 'https://pve2:8006'],
    token: proxmox.PROXMOX_TOKEN,
    racks: {},
  })
  expect(proxmoxSettings(readConfig({}))).toBeNull()
  expect(problems({ PROXMOX_URL: 'https://pve1:8006' })).toEqual(['PROXMOX_TOKEN is required when PROXMOX_URL is set'])
  expect(problems({ PROXMOX_TOKEN: proxmox.PROXMOX_TOKEN })).toHaveLength(1)
  expect(problems({ ...proxmox, PLATFORM_URL: 'http://127.0.0.1:1' })).toEqual([
    'PROXMOX_URL and PLATFORM_URL are both set: keep one',
  ])
  expect(problems({ ...proxmox, PROXMOX_URL: 'https://pve1:8006,http://pve2:8006' })[0]).toContain('must be https')
  expect(problems({ ...proxmox, PROXMOX_URL: 'pve1:8006' })).toHaveLength(1)
  expect(problems({ ...proxmox, PROXMOX_CA_FILE: '/nowhere.pem' })[0]).toContain('/nowhere.pem')
})

test('an invalid token of Proxmox VE is refused without being repeated', () => {
  for (const token of ['nightshift@pve=hunter2', 'PVEAPIToken=nightshift@pve!core=hunter2', 'hunter2']) {
    const found = problems({ ...proxmox, PROXMOX_TOKEN: token })
    expect(found).toEqual(['PROXMOX_TOKEN: is not USER@REALM!TOKENID=UUID'])
  }
})

test('racks are named by their nodes, each node in one rack', () => {
  const racks = (text: string) => readConfig({ ...proxmox, PROXMOX_RACKS: text }).PROXMOX_RACKS
  expect({ ...racks('r1=pve1,pve2; r2 = pve3') }).toEqual({ pve1: 'r1', pve2: 'r1', pve3: 'r2' })
  for (const text of ['r1', 'r1=', '=pve1', 'r1=pve1;r2=pve1', 'r1=pve1=pve2', 'r1=pve1,,pve2']) {
    expect([text, problems({ ...proxmox, PROXMOX_RACKS: text }).length > 0]).toEqual([text, true])
  }
})

test('the documentation lists every setting of platform_config with its default and meaning', () => {
  const text = readFileSync('docs/reference/configuration.md', 'utf8')
  const rows = [...text.matchAll(/^\| `([a-z_.]+(?:<…>)?)` \| (?:`([^`]*)`)? ?\| (.*) \|$/gm)]
  const told = new Map(rows.map(([, key = '', fallback, meaning]) => [key.replace('<…>', '*'), { fallback, meaning }]))
  expect([...told.keys()].toSorted()).toEqual(settings.map(({ key }) => key).toSorted())
  for (const { key, fallback, description } of settings) {
    expect([key, told.get(key)?.fallback ?? null]).toEqual([key, fallback])
    expect(told.get(key)?.meaning).toContain(description)
  }
})

test('Temporal is reached by its own variables, each over the profile of a file, and nothing else is read', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-'))
  const file = join(directory, 'temporal.toml')
  const text = ['[profile.default]', 'address = "first:1"', '[profile.cloud]', 'address = "cloud.example.com:7233"']
  writeFileSync(file, [...text, 'namespace = "ops.a1b2c"', 'api_key = "of-the-file"'].join('\n'))
  const settings = (environment: Record<string, string>) => temporalSettings(readConfig(environment))
  expect(settings({})).toEqual({ address: '127.0.0.1:7233', namespace: 'default', tls: false })
  expect(settings({ TEMPORAL_ADDRESS: 'temporal', TEMPORAL_NAMESPACE: 'ops' })).toEqual({
    address: 'temporal:7233',
    namespace: 'ops',
    tls: false,
  })
  // A key is never sent in clear text, so it brings TLS with it.
  expect(settings({ TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_API_KEY: 'k' })).toMatchObject({
    apiKey: 'k',
    tls: true,
  })
  expect(settings({ TEMPORAL_CONFIG_FILE: file })).toMatchObject({ address: 'first:1', namespace: 'default' })
  const cloud = { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'cloud' }
  expect(settings(cloud)).toEqual({
    address: 'cloud.example.com:7233',
    namespace: 'ops.a1b2c',
    apiKey: 'of-the-file',
    tls: true,
  })
  expect(settings({ ...cloud, TEMPORAL_NAMESPACE: 'mine', TEMPORAL_API_KEY: '' })).toMatchObject({
    namespace: 'mine',
    apiKey: 'of-the-file',
  })
})

test('a Temporal setting that cannot work is reported before a connection, with the setting and never the key', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-'))
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const authority = await newAuthority('Site')
  const [own, other] = [await authority.issue({ dns: ['own'] }), await authority.issue({ dns: ['other'] })]
  const certificate = write('own.pem', own.certificate)
  const wrong: [Record<string, string>, RegExp][] = [
    [{ TEMPORAL_ADDRESS: 'https://temporal:7233' }, /TEMPORAL_ADDRESS .* not host:port/],
    [
      { TEMPORAL_API_KEY: 'hunter2', TEMPORAL_TLS: 'false', TEMPORAL_ADDRESS: 'temporal:7233' },
      /TEMPORAL_TLS is false/,
    ],
    [{ TEMPORAL_API_KEY: 'hunter2 3' }, /TEMPORAL_API_KEY: is not a key/],
    [{ TEMPORAL_TLS: 'on' }, /TEMPORAL_TLS/],
    [
      { TEMPORAL_TLS: 'false', TEMPORAL_TLS_SERVER_CA_CERT_PATH: certificate },
      /TEMPORAL_TLS is false, and certificates/,
    ],
    [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere.pem' }, /TEMPORAL_TLS_SERVER_CA_CERT_PATH names \/nowhere\.pem/],
    [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: write('key', own.key) }, /holds no PEM certificate/],
    [{ TEMPORAL_TLS_CLIENT_CERT_PATH: certificate }, /are needed together/],
    [{ TEMPORAL_TLS_CLIENT_KEY_DATA: own.key }, /are needed together/],
    [{ TEMPORAL_TLS_CLIENT_CERT_PATH: certificate, TEMPORAL_TLS_CLIENT_KEY_DATA: other.key }, /is not the key of/],
    [{ TEMPORAL_TLS_CLIENT_CERT_PATH: certificate, TEMPORAL_TLS_CLIENT_CERT_DATA: 'x' }, /are both set/],
    [{ TEMPORAL_CONFIG_FILE: '/nowhere.toml' }, /TEMPORAL_CONFIG_FILE names \/nowhere\.toml/],
    [{ TEMPORAL_CONFIG_FILE: write('a', '[profile.cloud]'), TEMPORAL_PROFILE: 'clod' }, /Profile 'clod' not found/],
    [
      { TEMPORAL_CONFIG_FILE: write('b', '[profile.default]\napi_key = "hunter2') },
      /TEMPORAL_CONFIG_FILE .*b: Invalid/,
    ],
    [{ TEMPORAL_CONFIG_FILE: write('c', '[profile.default.tls]\nserver_ca = "x"') }, /unrecognized .*server_ca/],
  ]
  for (const [environment, problem] of wrong) {
    const found = problems(environment)
    expect([environment, found]).toEqual([environment, [expect.stringMatching(problem)]])
    expect(found.join()).not.toContain('hunter2')
  }
})

test('models are declared in a file, with references to their keys, and the default is that of LLM_BASE_URL', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-models-'))
  const [file, key] = [join(directory, 'models.json'), join(directory, 'key')]
  writeFileSync(key, 'sk-of-big\n')
  const read = (content: unknown, environment: Record<string, string> = {}) => {
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    const given = { LLM_BASE_URL: 'http://dgx:8000', LLM_MODEL: 'qwen', LLM_SERVERS_FILE: file }
    try {
      return { models: modelsOf(readConfig(given), environment), problems: [] }
    } catch (error) {
      return { models: [], problems: (error as ConfigError).problems }
    }
  }
  const big = { name: 'big', baseUrl: 'http://big:8000/v1', model: 'qwen-72b', keyFile: key, fallbacks: ['default'] }
  const cloud = { name: 'cloud', baseUrl: 'https://api.example/v1', model: 'm', keyVariable: 'CLOUD_KEY' }
  const whole = { default: { fallbacks: ['cloud'] }, models: [big, cloud] }
  expect(read(whole, { CLOUD_KEY: 'sk-of-cloud' }).models).toMatchObject([
    { name: 'default', baseUrl: 'http://dgx:8000', model: 'qwen', fallbacks: ['cloud'] },
    { name: 'big', apiKey: 'sk-of-big', fallbacks: ['default'] },
    { name: 'cloud', apiKey: 'sk-of-cloud', fallbacks: [] },
  ])
  const protocols = {
    default: { fallbacks: ['big'], protocol: 'auto' },
    models: [
      { ...big, protocol: 'json' },
      { ...big, name: 'b' },
    ],
  }
  expect(read(protocols).models.map(({ protocol }) => protocol)).toEqual(['auto', 'json', 'native'])
  const faults: [unknown, RegExp][] = [
    ['{', /which is not JSON/],
    [{ models: [{ ...big, apiKey: 'sk-in-the-file' }] }, /models\.0: .*apiKey/],
    [{ models: [{ ...big, baseUrl: 'http://user:pass@big:8000' }] }, /name the key by keyFile or keyVariable/],
    [{ models: [{ ...big, keyFile: '/no/such/file' }] }, /big: keyFile names \/no\/such\/file, which cannot be read/],
    [{ models: [cloud] }, /cloud: keyVariable names CLOUD_KEY, which is not set/],
    [{ models: [big, big] }, /big is declared twice/],
    [{ models: [{ ...big, fallbacks: ['gone'] }] }, /big: its fallback gone is declared nowhere/],
    [{ models: [{ ...big, fallbacks: ['big'] }] }, /big: its fallback big is itself/],
    [{ models: [{ ...big, protocol: 'words' }] }, /models\.0\.protocol/],
    [
      { default: { fallbacks: ['big'] }, models: [{ ...big, protocol: 'json' }] },
      /default uses native, but its fallback big uses json.*give both the same protocol/,
    ],
  ]
  for (const [content, fault] of faults) {
    const { problems } = read(content)
    expect(problems.join('\n')).toMatch(fault)
    expect(problems.join('\n')).not.toMatch(/sk-|pass@/)
  }
})

test('every setting has a short description, a section, and the unit of its number', () => {
  for (const { key, label, section, unit, schema, description } of settings) {
    const takesNumber = ['1', '60', '1000', '2000'].some((text) => typeof schema.safeParse(text).data === 'number')
    expect([key, unit !== null]).toEqual([key, takesNumber])
    expect([key, label]).toEqual([key, expect.stringMatching(/^[A-Z].{3,40}$/)])
    expect([key, description]).toEqual([key, expect.stringMatching(/\.$/)])
    expect(settingSections).toContain(section)
  }
  expect(new Set(settings.map(({ label }) => label)).size).toBe(settings.length)
  expect([...new Set(settings.map(({ section }) => section))]).toEqual([...settingSections])
})

test.each([
  [600, 's', '600 s (10 min)'],
  ['43200', 's', '43,200 s (12 h)'],
  [60, 's', '60 s'],
  [25, '$', '$25'],
  ['2.50', '$', '$2.50'],
  [400_000, 'tokens', '400,000 tokens'],
  [1, 'people', '1 person'],
  ['ten', 'turns', 'ten'],
])('%p counted in %s is shown as %s', (value, unit, shown) => {
  expect(formatWithUnit(value, unit)).toBe(shown)
})

test('every environment variable is listed with its description, and a secret only as set or not', () => {
  const marker = 'MARKER0123456789'
  const given = Object.fromEntries(secrets.map((name) => [name, `postgresql://u:${marker}@db/x`]))
  const files = Object.fromEntries(secrets.map((name) => [`${name}_FILE`, `/run/${marker}/key`]))
  const addresses = { LLM_BASE_URL: `https://u:${marker}@llm.example.com/v1?api-key=${marker}`, LLM_MAX_TURNS: '12' }
  const all = listEnvironment({ ...given, ...addresses, TEMPORAL_TLS_CLIENT_CERT_DATA: marker })
  expect(all.map(({ name }) => name).toSorted()).toEqual([...settingNames].toSorted())
  for (const { name, description } of all) expect([name, description.length > 10]).toEqual([name, true])
  for (const listed of [all, listEnvironment(files), listEnvironment({ ...files, ...addresses })]) {
    expect(JSON.stringify(listed)).not.toContain('MARKER')
    for (const name of secrets)
      expect(listed.find((each) => each.name === name)).toMatchObject({ secret: true, state: 'set', value: null })
  }
  const value = (name: string) => all.find((each) => each.name === name)?.value
  expect([value('LLM_BASE_URL'), value('LLM_MAX_TURNS')]).toEqual(['https://llm.example.com/v1?…', '12'])
  expect(all.find(({ name }) => name === 'PORT')).toMatchObject({ state: 'default', value: '8080', group: 'Processes' })
  expect(all.find(({ name }) => name === 'PUBLIC_URL')).toMatchObject({ state: 'not_set', value: null })
  const none = listEnvironment({}).filter(({ secret }) => secret)
  expect(new Set(none.map(({ state }) => state))).toEqual(new Set(['not_set']))
})

test.each([
  ['https://a:b@pve1:8006,https://c@pve2:8006', 'https://pve1:8006,https://pve2:8006'],
  ['https://x/?token=a,https://y/?token=b#c', 'https://x/?…,https://y/?…#c'],
  ['https://a@b:c@host/x', 'https://host/x'],
  ['fcm.googleapis.com,*.push.apple.com', 'fcm.googleapis.com,*.push.apple.com'],
])('the address %s is shown as %s', (text, shown) => {
  expect(withoutCredentials(text)).toBe(shown)
})
