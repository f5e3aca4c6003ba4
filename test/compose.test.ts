import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { readConfig, secrets, settingNames, temporalSettings } from '../config.ts'
import { composed } from './support/compose.ts'

// There is no container engine where these tests run: the file is held by the rules of the Compose Specification that it uses.
const file = 'docker-compose.yml'
const profiles = ['postgres', 'temporal']

/** Given by the image or by the file itself, because the services find each other by them. */
const fixed = ['HOST', 'PORT', 'WORKER_PORT']

/** Every variable that a process may be given: the settings, and a file for each secret. */
const variables = [...settingNames, ...secrets.map((name) => `${name}_FILE`)].filter((name) => !fixed.includes(name))

/** Which services read it. What one process alone may know goes into no other. */
function readersOf(name: string): string[] {
  if (name.startsWith('MESH_') || name.startsWith('KNOWLEDGE_') || name === 'JOBS_FILE') return ['api']
  if (name.startsWith('BOOTSTRAP_')) return ['migrate']
  if (name.startsWith('WORKER_') || name === 'LLM_SERVERS_FILE') return ['worker']
  return ['api', 'migrate', 'worker']
}

const environmentsWith = (given: Record<string, string>) => {
  const { services } = composed(file, given)
  return Object.entries(services).map(([service, { environment }]) => [service, environment] as const)
}

test('every setting and every file of a secret reaches the services that read it, and no other', () => {
  for (const name of variables) {
    const value = `the ${name}`
    const reached = environmentsWith({ [name]: value }).filter(([, environment]) => environment[name] === value)
    // The job that makes the namespace of the bundled Temporal is asked for the same one.
    const readers = name === 'TEMPORAL_NAMESPACE' ? [...readersOf(name), 'temporal-namespace'] : readersOf(name)
    expect([name, reached.map(([service]) => service).toSorted()]).toEqual([name, readers.toSorted()])
  }
})

test('with nothing but the password every process starts with the defaults, on the database and the Temporal of the file', () => {
  const { services } = composed(file, { POSTGRES_PASSWORD: 'secret' })
  for (const name of ['api', 'worker', 'migrate']) {
    const { environment = {} } = services[name] ?? {}
    const given = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, String(value ?? '')]))
    const { DATABASE_URL, CORE_API_URL, PUBLIC_URL, TEMPORAL_ADDRESS, ...rest } = readConfig(given, ['DATABASE_URL'])
    expect(DATABASE_URL).toBe('postgresql://nightshift:secret@postgresql:5432/nightshift')
    expect([CORE_API_URL, PUBLIC_URL, TEMPORAL_ADDRESS]).toEqual([
      ...['http://api:8080', 'http://127.0.0.1:8080', 'temporal:7233'],
    ])
    const { CORE_API_URL: _, ...defaults } = readConfig({})
    expect(rest).toEqual(defaults)
  }
})

test('with a database and a Temporal of one’s own, by file and profile, nothing of the bundled ones is in the way', () => {
  const given = {
    DATABASE_URL: '',
    DATABASE_URL_FILE: '/run/nightshift/url',
    TEMPORAL_ADDRESS: '',
    TEMPORAL_TLS: 'true',
  }
  for (const [service, environment] of environmentsWith(given).filter(([name]) => ['api', 'worker'].includes(name))) {
    const { DATABASE_URL, DATABASE_URL_FILE, TEMPORAL_ADDRESS } = environment
    expect([service, DATABASE_URL, DATABASE_URL_FILE, TEMPORAL_ADDRESS]).toEqual([
      ...[service, '', '/run/nightshift/url', ''],
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

test('what the services name is there: images by version, volumes, one build, and the keys of the mesh for the API alone', () => {
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
  for (const base of bases) expect(base).toMatch(/:\d+\.\d+\.\d+-/)
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

# Of the database that runs here; without characters that a URL would need escaped.
POSTGRES_PASSWORD=

# Directories that are mounted as /run/nightshift, and for the API alone as /run/nightshift-api.
#SECRETS_DIR=./secrets
#API_SECRETS_DIR=./secrets-api`

test('the example has every setting with a sentence (UPDATE=1 writes it), and taken as it is it starts', () => {
  if (process.env.UPDATE) writeFileSync('.env.example', example())
  const text = readFileSync('.env.example', 'utf8')
  expect(text).toBe(example())
  for (const name of variables) expect(text).toMatch(new RegExp(`^# .{10,}\\n(?:#\\w+=.*\\n)*#?${name}=`, 'm'))
  const set = Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
  expect(Object.keys(set)).toEqual(['COMPOSE_PROFILES', 'POSTGRES_PASSWORD'])
  const { environment = {} } = composed(file, set).services.worker ?? {}
  expect(temporalSettings(readConfig(environment as never))).toMatchObject({ address: 'temporal:7233', tls: false })
})
