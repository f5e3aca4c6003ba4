import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { readConfig, secrets, settingNames, temporalSettings } from '../config/settings.ts'

/**
 * The parts of the Compose Specification (github.com/compose-spec/compose-spec) that our file uses,
 * strictly: what is not listed here is a slip, or is to be looked up and added. It takes the place
 * of `docker compose config` where there is no container engine.
 */
const duration = z.string().regex(/^(\d+(us|ms|s|m|h))+$/)
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
const words = z.union([z.string(), z.array(z.string())])

const service = z.strictObject({
  build: z.string().optional(),
  image: z.string(),
  profiles: z.array(z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/)).optional(),
  restart: z.enum(['no', 'always', 'on-failure', 'unless-stopped']).optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string().startsWith('/')).optional(),
  security_opt: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  depends_on: z
    .record(
      z.string(),
      z.strictObject({
        condition: z.enum(['service_started', 'service_healthy', 'service_completed_successfully']),
        required: z.boolean().default(true),
      }),
    )
    .default({}),
  environment: z.record(z.string().regex(/^[A-Z_][A-Z0-9_]*$/), scalar).default({}),
  entrypoint: words.optional(),
  command: words.optional(),
  ports: z.array(z.string().regex(/^([\d.]+:)?\d+:\d+$/)).optional(),
  volumes: z.array(z.string().regex(/^[^:]+:\/[^:]+(:ro)?$/)).default([]),
  healthcheck: z
    .strictObject({
      test: z.array(z.string()).min(2),
      interval: duration,
      timeout: duration,
      start_period: duration.optional(),
      retries: z.number().int(),
    })
    .optional(),
  stop_grace_period: duration.optional(),
})

const project = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]*$/),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
})

type Project = z.infer<typeof project>

/**
 * The file as Compose takes it with these variables and nothing else. Throws what Compose would
 * refuse.
 */
function composed(file: string, variables: Record<string, string>): Project {
  const raw = parse(readFileSync(file, 'utf8'), { merge: true }) as Record<string, unknown>
  const own = Object.fromEntries(Object.entries(raw).filter(([name]) => !name.startsWith('x-')))
  return project.parse(everyText(own, (text) => interpolated(text, variables)))
}

function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => everyText(each, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, everyText(each, change)]))
}

/** `${A}`, `${A-x}`, `${A:-x}`, `${A:?x}` with others of them in x, and `$$` for a dollar. */
function interpolated(text: string, variables: Record<string, string>): string {
  let result = ''
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '$') {
      result += text[at]
      at += 1
    } else if (text[at + 1] === '$') {
      result += '$'
      at += 2
    } else {
      const end = closing(text, at)
      result += substituted(text.slice(at + 2, end), variables)
      at = end + 1
    }
  }
  return result
}

function closing(text: string, from: number): number {
  if (text[from + 1] !== '{') throw new Error(`a dollar that is neither $$ nor \${…}: ${text}`)
  let depth = 0
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    if (text[at] === '}') depth -= 1
    if (depth === 0) return at
  }
  throw new Error(`a brace that is not closed: ${text}`)
}

function substituted(inner: string, variables: Record<string, string>): string {
  const [, name = '', operator = '', rest = ''] = /^([A-Za-z_]\w*)(?:(:?[-?])([\s\S]*))?$/.exec(inner) ?? []
  if (!name) throw new Error(`not a variable: ${inner}`)
  const value = variables[name]
  const isThere = operator.startsWith(':') ? Boolean(value) : value !== undefined
  if (isThere || operator === '') return value ?? ''
  if (operator.endsWith('?')) throw new Error(`${name} is required: ${rest}`)
  return interpolated(rest, variables)
}

// There is no container engine where these tests run: the file is held by the rules of the Compose
// Specification that it uses.
const file = 'docker-compose.yml'
const profiles = ['postgres', 'temporal']

/** Given by the image or by the file itself, because the services find each other by them. */
const fixed = ['HOST', 'PORT', 'WORKER_PORT']

/** Every variable that a process may be given: the settings, and a file for each secret. */
const variables = [...settingNames, ...secrets.map((name) => `${name}_FILE`)].filter((name) => !fixed.includes(name))

/** Which services read it. What one process alone may know goes into no other. */
function readersOf(name: string): string[] {
  if (name.startsWith('MESH_') || name.startsWith('KNOWLEDGE_') || name === 'JOBS_FILE' || name === 'SOURCES_DIR')
    return ['api']
  if (name.startsWith('BOOTSTRAP_')) return ['migrate']
  if (name.startsWith('WORKER_') || name === 'LLM_SERVERS_FILE') return ['worker']
  return ['api', 'migrate', 'worker']
}

const environmentsWith = (given: Record<string, string>) => {
  const { services } = composed(file, given)
  return Object.entries(services).map(([service, { environment }]) => [service, environment] as const)
}

test('every setting and every secret file reaches the services that read it, and no other', () => {
  for (const name of variables) {
    const value = `the ${name}`
    const reached = environmentsWith({ [name]: value }).filter(([, environment]) => environment[name] === value)
    // The job that makes the namespace of the bundled Temporal is asked for the same one.
    const readers = name === 'TEMPORAL_NAMESPACE' ? [...readersOf(name), 'temporal-namespace'] : readersOf(name)
    expect([name, reached.map(([service]) => service).toSorted()]).toEqual([name, readers.toSorted()])
  }
})

test('with only passwords every process starts with the defaults, on the database and the Temporal of the file', () => {
  const { services } = composed(file, {
    POSTGRES_PASSWORD: 'secret',
    NIGHTSHIFT_DB_PASSWORD: 'lesser',
    TEMPORAL_DB_PASSWORD: 'other',
  })
  for (const name of ['api', 'worker', 'migrate']) {
    const { environment = {} } = services[name] ?? {}
    const given = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, String(value ?? '')]))
    const { DATABASE_URL, CORE_API_URL, PUBLIC_URL, TEMPORAL_ADDRESS, ...rest } = readConfig(given, ['DATABASE_URL'])
    // The login that owns the tables makes them, and no service has it.
    const login = name === 'migrate' ? 'nightshift:secret' : 'nightshift_services:lesser'
    expect(DATABASE_URL).toBe(`postgresql://${login}@postgresql:5432/nightshift`)
    expect([CORE_API_URL, PUBLIC_URL, TEMPORAL_ADDRESS]).toEqual([
      ...['http://api:8080', 'http://127.0.0.1:8080', 'temporal:7233'],
    ])
    const { CORE_API_URL: _, ...defaults } = readConfig({})
    expect(rest).toEqual(defaults)
  }
})

test('with an external database and Temporal, by file and profile, the bundled ones do not interfere', () => {
  const given = {
    DATABASE_URL: '',
    DATABASE_URL_FILE: '/run/nightshift/url',
    TEMPORAL_ADDRESS: '',
    TEMPORAL_TLS: 'true',
  }
  for (const [service, environment] of environmentsWith(given).filter(([name]) => ['api', 'worker'].includes(name))) {
    const { DATABASE_URL, DATABASE_URL_FILE, TEMPORAL_ADDRESS } = environment
    expect([service, DATABASE_URL, DATABASE_URL_FILE, TEMPORAL_ADDRESS]).toEqual([
      service,
      '',
      '/run/nightshift/url',
      '',
    ])
  }
  const { services } = composed(file, given)
  for (const [name, { profiles: own = [], depends_on }] of Object.entries(services)) {
    for (const [other, { required }] of Object.entries(depends_on)) {
      const { profiles: needed = [] } = services[other] ?? {}
      // A service that is not there stops the start, unless it is one that goes with the same wish.
      const isOptional = needed.length > 0 && own.length === 0
      expect([name, other, required]).toEqual([name, other, !isOptional])
    }
  }
  expect([...new Set(Object.values(services).flatMap(({ profiles: own = [] }) => own))].toSorted()).toEqual(profiles)
})

test('everything that the services name exists: images by version, volumes, one build, and the keys of the mesh for the API alone', () => {
  const { services, volumes } = composed(file, {})
  for (const [name, { image, build, depends_on, volumes: mounts }] of Object.entries(services)) {
    expect([name, image]).toEqual([
      name,
      expect.stringMatching(build ? /^nightshift:\d+\.\d+\.\d+$/ : /:\d+\.\d+[.\w-]*$/),
    ])
    for (const other of Object.keys(depends_on)) expect(Object.keys(services)).toContain(other)
    for (const [source = ''] of mounts.map((mount) => mount.split(':'))) {
      expect([name, source, source.startsWith('./') || source in volumes]).toEqual([name, source, true])
    }
    expect([name, mounts.some((mount) => mount.includes('secrets-api'))]).toEqual([name, name === 'api'])
  }
  const version = JSON.parse(readFileSync('package.json', 'utf8')).version
  expect(services.api?.image).toBe(`nightshift:${version}`)
  const bases = [...readFileSync('Dockerfile', 'utf8').matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)
  const stages = [...readFileSync('Dockerfile', 'utf8').matchAll(/ AS (\w+)$/gm)].map(([, stage]) => stage)
  for (const base of bases.filter((each) => !stages.includes(each)))
    expect(base).toMatch(/:\d+\.\d+\.\d+-|^debian:bookworm-slim$/)
  // Neither goes into the image with the sources.
  expect(readFileSync('.dockerignore', 'utf8').split('\n')).toEqual(expect.arrayContaining(['.env*', 'secrets*']))
})

/** The example as the documentation has it: each setting off, with its sentence and its default. */
function example(): string {
  const text = readFileSync('docs/reference/configuration.md', 'utf8')
  const table = text.slice(text.indexOf('## Environment'), text.indexOf('## Temporal'))
  const rows = [...table.matchAll(/^\| `([A-Z_]+)` \| (?:`(.*?)`)? ?\| (.*) \|$/gm)]
  const { environment = {} } = composed(file, {}).services.api ?? {}
  const settings = rows
    .filter(([, name = '']) => variables.includes(name))
    .map(([, name = '', fallback = '', meaning = '']) => {
      const plain = meaning.replaceAll('`', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      const isSecret = (secrets as readonly string[]).includes(name)
      // Where the file has a default of its own, that is what happens if nobody sets it.
      const value = isSecret ? '' : environment[name] || fallback
      return [`# ${plain}`, `#${name}=${value}`, ...(isSecret ? [`#${name}_FILE=`] : [])].join('\n')
    })
  return `${[exampleHead, ...settings].join('\n\n')}\n`
}

const exampleHead = `# Settings of docker-compose.yml: copy this to .env, and take the # away from what you set. What stays away has its default.
# Secrets come from here, or from a file in ./secrets that user 1000 of the containers can read: NAME_FILE=/run/nightshift/<file>.
# The whole of it: docs/reference/configuration.md.

# What runs here besides Nightshift: postgres,temporal or postgres, or nothing with a database and a Temporal elsewhere.
COMPOSE_PROFILES=postgres,temporal

# Of the database that runs here, each without characters that a URL would need escaped (openssl rand -hex 24): of the login that owns all and
# makes the tables, of the services, which own nothing, and of Temporal, which has two databases of its own.
POSTGRES_PASSWORD=
NIGHTSHIFT_DB_PASSWORD=
TEMPORAL_DB_PASSWORD=

# Of a database elsewhere: the login that owns it, for the migrations alone. Without it DATABASE_URL is taken for them too.
#MIGRATE_DATABASE_URL=

# Directories that are mounted as /run/nightshift, and for the API alone as /run/nightshift-api.
#SECRETS_DIR=./secrets
#API_SECRETS_DIR=./secrets-api`

test('the example has every setting with a sentence (UPDATE=1 writes it), and it starts unchanged', () => {
  if (process.env.UPDATE) writeFileSync('.env.example', example())
  const text = readFileSync('.env.example', 'utf8')
  expect(text).toBe(example())
  for (const name of variables) expect(text).toMatch(new RegExp(`^# .{10,}\\n(?:#\\w+=.*\\n)*#?${name}=`, 'm'))
  const set = Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
  expect(Object.keys(set)).toEqual([
    'COMPOSE_PROFILES',
    'POSTGRES_PASSWORD',
    'NIGHTSHIFT_DB_PASSWORD',
    'TEMPORAL_DB_PASSWORD',
  ])
  const { environment = {} } = composed(file, set).services.worker ?? {}
  expect(temporalSettings(readConfig(environment as never))).toMatchObject({ address: 'temporal:7233', tls: false })
})
