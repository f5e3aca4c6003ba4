import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { queueScheduleId } from '../../../domain/step-key.ts'
import { ensureSchedule } from '../../../worker/schedule.ts'
import { emptyDatabase, freshDatabase, registerNamespace, temporalAddress } from '../../support/broker.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type RunningHost, runHost } from '../../support/model-hosts/host.ts'
import { llamaCpp } from '../../support/model-hosts/local.ts'
import { emptyDir, runCli, tokenFile, useServedApi } from '../../support/run-cli.ts'
import { newAuthority, startTemporalProxy, type TemporalProxy } from '../../support/temporal-proxy.ts'

const api = useServedApi()
const key = 'sk-of-the-site-which-nobody-prints'

let model: RunningHost
let database: Awaited<ReturnType<typeof freshDatabase>>
let temporal: string
let behindTls: TemporalProxy
let place: ReturnType<typeof temporaryDirectory>
let file: string

beforeAll(async () => {
  const plain = llamaCpp({ window: 32_768 })
  const host: typeof plain = {
    ...plain,
    other: (path, body) =>
      path === '/v1/models' ? { data: [{ id: 'qwen3-8b.gguf' }, { id: 'other' }] } : plain.other(path, body),
    refuse(asked, headers) {
      if (headers.authorization !== `Bearer ${key}`)
        return { status: 401, body: { error: { message: 'Invalid API Key', type: 'authentication_error', code: 401 } } }
      if (asked.model === 'nobody')
        return {
          status: 404,
          body: { error: { message: 'The model `nobody` does not exist', code: 'model_not_found' } },
        }
      return plain.refuse(asked, headers)
    },
  }
  model = await runHost(host, ({ model: name }) =>
    name === 'talker'
      ? { content: 'I would look at vm-310.' }
      : { calls: [{ name: 'get_resource', arguments: { id: 'vm-310' } }] },
  )
  ;[database, temporal] = await Promise.all([freshDatabase(), temporalAddress()])
  const authority = await newAuthority('Site')
  behindTls = await startTemporalProxy(temporal, { pair: await authority.issue({ dns: ['localhost'] }), apiKey: 'key' })
})
// A proxy that asks for a sign-in, whatever is asked of it.
const page = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<html>Sign in</html>'))
let pageUrl: string
beforeAll(async () => {
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
  pageUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}/v1`
})
afterAll(() => void page.close())
afterAll(async () => {
  await Promise.all([model.stop(), database.drop(), behindTls.stop()])
})
beforeEach(() => {
  place = temporaryDirectory()
  file = join(place.path, 'nightshift.env')
})
afterEach(() => place.remove())

/** Answers of a site where everything is right, but for what a test says. */
function answersFile(own: Record<string, string | null> = {}): string {
  const all: Record<string, string | null> = {
    LLM_BASE_URL: `${model.url}/v1`,
    LLM_MODEL: 'qwen3-8b.gguf',
    LLM_API_KEY_FILE: keyFile(),
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: temporal,
    PUBLIC_URL: 'https://nightshift.example.com',
    PORT: String(freePortOfTests),
    ...own,
  }
  const path = join(place.path, 'answers')
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}='${value}'`]))
  writeFileSync(path, lines.join('\n'))
  return path
}

/** Below what systems give away by themselves; nothing of the tests listens there. */
const freePortOfTests = 18_097

function keyFile(text = key): string {
  const path = join(place.path, text === key ? 'key' : 'other-key')
  writeFileSync(path, `${text}\n`)
  return path
}

async function freshNamespace(): Promise<string> {
  const connection = await Connection.connect({ address: temporal })
  const namespace = `site-${randomBytes(4).toString('hex')}`
  await registerNamespace(connection, namespace)
  await connection.close()
  return namespace
}

const setup = (more: string[] = [], own: Record<string, string | null> = {}) =>
  runCli(['setup', '--settings', file, '--answers', answersFile(own), ...more])

type Answer = { rows: { step: string; state: string; detail: string; remedy: string | null }[] }
const rowsOf = (stdout: string) => (JSON.parse(stdout) as Answer).rows
const statesOf = (stdout: string) => Object.fromEntries(rowsOf(stdout).map(({ step, state }) => [step, state]))

/** What setup itself put there. */
const written = () =>
  readdirSync(place.path)
    .filter((name) => !['answers', 'key', 'other-key'].includes(name))
    .sort()

test('a site is checked and its settings are written, and a second setup finds them all', async () => {
  const dry = await setup(['--dry-run', '--json'])
  expect([dry.code, statesOf(dry.stdout)]).toEqual([
    0,
    {
      model: 'not yet',
      PostgreSQL: 'works',
      Temporal: expect.any(String),
      address: 'works',
      settings: 'would be written',
      'test alert': 'not yet',
    },
  ])
  expect(written()).toEqual([])
  expect(model.asked).toEqual([])

  const first = await setup(['--json'])
  expect([first.code, statesOf(first.stdout)]).toMatchObject([
    0,
    { model: 'works', settings: 'written', 'test alert': 'not yet' },
  ])
  expect(rowsOf(first.stdout)[0]!.detail).toMatch(
    /called get_resource \{"id":"vm-310"\} in [\d.]+ s, [\d,]+ tokens read and \d+ written; an incident of 4 turns/,
  )
  expect(model.asked).toHaveLength(1)
  expect(written()).toEqual([
    'admin-token',
    'agent-token',
    'api.env',
    'ingest-token',
    'mesh-root.pem',
    'mesh-signing.pem',
    'nightshift.env',
  ])
  for (const name of written()) expect([name, statSync(join(place.path, name)).mode & 0o007]).toEqual([name, 0])
  expect(readFileSync(join(place.path, 'admin-token'), 'utf8')).toMatch(/^[0-9a-f]{48}\n$/)
  expect(readFileSync(join(place.path, 'mesh-root.pem'), 'utf8')).toContain('BEGIN PRIVATE KEY')
  const text = readFileSync(file, 'utf8')
  for (const line of [
    'AGENT_ENABLED=true',
    `LLM_BASE_URL=${model.url}/v1`,
    `BOOTSTRAP_ADMIN_TOKEN_FILE=${join(place.path, 'admin-token')}`,
  ])
    expect(text).toContain(`${line}\n`)
  // The owner's login and the key itself are written nowhere.
  expect(text).not.toContain(key)

  const again = await runCli(['setup', '--settings', file, '--json'])
  expect([again.code, statesOf(again.stdout)]).toMatchObject([0, { model: 'works', settings: 'there' }])
  expect(readFileSync(file, 'utf8')).toBe(text)
  expect(written()).toHaveLength(7)
  for (const { stdout, stderr } of [dry, first, again])
    for (const secret of [key, new URL(database.url).password]) expect(stdout + stderr).not.toContain(secret)
})

test("a shell reads the file as intended, and a person's own lines stay", async () => {
  writeFileSync(file, '# ours\nLOG_LEVEL=debug\n\nAGENT_ENABLED=false\n', { mode: 0o640 })
  const hard = `${database.url}?connect_timeout=10&application_name=a$HOME`
  expect((await setup(['--json'], { DATABASE_URL: hard })).code).toBe(0)
  const text = readFileSync(file, 'utf8')
  expect(text).toMatch(/^# ours\nLOG_LEVEL=debug\n\nAGENT_ENABLED=false\n/)
  const shell = spawn('sh', ['-c', `. ${file}; printf %s "$DATABASE_URL"`], { env: { HOME: '/elsewhere' } })
  let said = ''
  for await (const chunk of shell.stdout) said += chunk
  expect(said).toBe(hard)
  expect(statSync(file).mode & 0o777).toBe(0o640)
})

test("a person's value is not replaced without --replace, which keeps the earlier file beside it", async () => {
  expect((await setup(['--json'])).code).toBe(0)
  const before = readFileSync(file, 'utf8')
  const refused = await setup([], { LLM_MODEL: 'other' })
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('has other values for LLM_MODEL: give --replace'),
  ])
  expect(readFileSync(file, 'utf8')).toBe(before)
  const replaced = await setup(['--replace', '--json'], { LLM_MODEL: 'other' })
  expect(replaced.code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe(before.replace('LLM_MODEL=qwen3-8b.gguf', 'LLM_MODEL=other'))
  const kept = written().find((name) => /^nightshift\.env\.\d{8}T\d{6}Z$/.test(name))
  expect(readFileSync(join(place.path, kept ?? ''), 'utf8')).toBe(before)
})

/** Each alone is said as it would be with the others: a run tries one of each step. */
const wrongs: [what: string, own: () => Record<string, string | null>, step: string, said: RegExp, remedy: RegExp][] = [
  [
    'a wrong password',
    () => ({ DATABASE_URL: database.url.replace(/:[^:@/]+@/, ':wrong@') }),
    'PostgreSQL',
    /refuses the login/,
    /CREATE ROLE nightshift_services LOGIN/,
  ],
  [
    'a PostgreSQL without TLS, asked for it',
    () => ({ DATABASE_URL: `${database.url}?sslmode=require` }),
    'PostgreSQL',
    /asks for TLS/,
    /sslmode/,
  ],
  [
    'a Temporal that is not there',
    () => ({ TEMPORAL_ADDRESS: '127.0.0.1:1' }),
    'Temporal',
    /Nothing listens at 127\.0\.0\.1:1/,
    /TEMPORAL_ADDRESS/,
  ],
  [
    'a Temporal behind TLS, asked without',
    () => ({ TEMPORAL_ADDRESS: `localhost:${behindTls.port}` }),
    'Temporal',
    /uses TLS, but Nightshift does not/,
    /TEMPORAL_TLS=true/,
  ],
  [
    'a Temporal without TLS, asked for it',
    () => ({ TEMPORAL_TLS: 'true' }),
    'Temporal',
    /does not use TLS/,
    /TEMPORAL_TLS=false/,
  ],
  [
    'a namespace that nobody made',
    () => ({ TEMPORAL_NAMESPACE: 'nobody-made' }),
    'Temporal',
    /has no namespace "nobody-made"/,
    /namespace create --namespace nobody-made/,
  ],
  [
    'a wrong key',
    () => ({ LLM_API_KEY_FILE: keyFile('sk-another-one-altogether') }),
    'model',
    /refuses the key/,
    /LLM_API_KEY_FILE/,
  ],
  [
    'a key file that is not there',
    () => ({ LLM_API_KEY_FILE: '/nowhere/key' }),
    'model',
    /key file \/nowhere\/key cannot be read/,
    /--key-file/,
  ],
  [
    'a model that the server does not have',
    () => ({ LLM_MODEL: 'nobody' }),
    'model',
    /There is no model nobody/,
    /The server has qwen3-8b\.gguf, other/,
  ],
  ['a model that only talks', () => ({ LLM_MODEL: 'talker' }), 'model', /made no tool call/, /Turn on tool calls/],
  [
    'a server that is not there',
    () => ({ LLM_BASE_URL: 'http://127.0.0.1:1' }),
    'model',
    /cannot be reached/,
    /Start the server/,
  ],
  [
    'an address where a page answers',
    () => ({ LLM_BASE_URL: pageUrl }),
    'model',
    /http:\/\/127\.0\.0\.1:\d+.* did not return a valid response of a model: .* is not JSON/,
    /a sign-in page/,
  ],
  [
    'what is no address of a model',
    () => ({ LLM_BASE_URL: 'gpu-1' }),
    'model',
    /gpu-1 is no http\(s\) URL/,
    /--base-url/,
  ],
  [
    'an address with a path',
    () => ({ PUBLIC_URL: 'https://example.com/nightshift' }),
    'address',
    /not an address of a site/,
    /without a path/,
  ],
  ['a setting that cannot be', () => ({ LLM_MAX_TURNS: '0' }), 'settings', /LLM_MAX_TURNS/, /Nothing was written/],
]

const steps = ['model', 'PostgreSQL', 'Temporal', 'address'] as const
const wrongsOf = (step: string) => wrongs.filter(([, , each]) => each === step)
const rounds = Array.from({ length: Math.max(...steps.map((step) => wrongsOf(step).length)) }, (_, round) =>
  steps.flatMap((step) => wrongsOf(step).slice(round, round + 1)),
)
const named = [...rounds, wrongsOf('settings')].map((round) => [round.map(([what]) => what).join(', '), round] as const)

test.each(named)('%s: each error is reported with its remedy, and nothing is written', async (_, round) => {
  const own = Object.assign({}, ...round.map(([, answers]) => answers()))
  const { code, stdout, stderr } = await setup(['--json'], own)
  const failed = rowsOf(stdout).filter(({ state }) => state === 'failed')
  const wanted = round.map(([, , step, said, remedy]) => ({
    ...{ step, state: 'failed' },
    ...{ detail: expect.stringMatching(said), remedy: expect.stringMatching(remedy) },
  }))
  expect([code, failed]).toEqual([1, wanted])
  expect(written()).toEqual([])
  for (const secret of [key, new URL(database.url).password]) expect(stdout + stderr).not.toContain(secret)
})

test.each([
  ['without its version', (url: string) => url],
  ['with its version twice', (url: string) => `${url}/v1/v1/`],
  ['as the path of the completions', (url: string) => `${url}/v1/chat/completions`],
])('the address of a model %s works', async (_, spell) => {
  const { code, stdout } = await setup(['--json', '--no-alert'], { LLM_BASE_URL: spell(model.url) })
  expect([code, statesOf(stdout).model]).toEqual([0, 'works'])
  expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^LLM_BASE_URL=${model.url}(/v1)?$`, 'm'))
})

test('an answer without a value is no answer, and does not mean that there is no model', async () => {
  const { code, stderr } = await setup([], { LLM_BASE_URL: '', PUBLIC_URL: ' ' })
  expect([code, stderr]).toEqual([2, expect.stringContaining('--base-url (LLM_BASE_URL)')])
  expect(stderr).toContain('--public-url (PUBLIC_URL)')
  expect(written()).toEqual([])
})

test('an answers file that others can read is reported, and an endless one is not read to its end', async () => {
  const answers = answersFile()
  chmodSync(answers, 0o644)
  const { stderr } = await runCli(['setup', '--settings', file, '--answers', answers, '--dry-run'])
  expect(stderr).toContain(`Everybody on this host can read ${answers}. Run "chmod 600 ${answers}"`)
  const endless = await runCli(['setup', '--settings', file, '--answers', '/dev/zero'])
  expect([endless.code, endless.stderr]).toEqual([2, expect.stringContaining('/dev/zero is larger than 256 KiB')])
})

test('a settings file that others could read is closed to them once it contains a login', async () => {
  writeFileSync(file, 'LOG_LEVEL=info\n', { mode: 0o644 })
  expect((await setup(['--no-alert'])).code).toBe(0)
  expect(readFileSync(file, 'utf8')).toContain('DATABASE_URL=')
  expect((statSync(file).mode & 0o777).toString(8)).toBe('640')
})

test('a namespace of Temporal that belongs to another site is refused before anything is written', async () => {
  const namespace = await freshNamespace()
  const connection = await Connection.connect({ address: temporal })
  const taken = new Client({ connection, namespace })
  const theirs = { taskQueue: 'nightshift', intervalSeconds: 60, enabled: true, site: 'of another database' }
  await eventually('their Schedule', () =>
    ensureSchedule(taken, theirs).then(
      () => true,
      () => false,
    ),
  )
  const { code, stdout } = await setup(['--json'], { TEMPORAL_NAMESPACE: namespace })
  expect([code, rowsOf(stdout).find(({ step }) => step === 'Temporal')]).toEqual([
    1,
    {
      step: 'Temporal',
      state: 'failed',
      detail: `The namespace ${namespace} at ${temporal} belongs to another Nightshift, which has another database`,
      remedy: expect.stringContaining('TEMPORAL_NAMESPACE'),
    },
  ])
  expect(written()).toEqual([])
  await taken.schedule.getHandle(queueScheduleId).delete()
  await connection.close()
})

test('a port in use is reported with the program that uses it', async () => {
  const server = createServer((_, response) => response.end('not it')).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  try {
    const { code, stdout } = await setup(['--json'], { PORT: String(port) })
    expect([code, rowsOf(stdout).find(({ step }) => step === 'address')]).toEqual([
      1,
      expect.objectContaining({
        state: 'failed',
        detail: expect.stringMatching(new RegExp(`port ${port} is in use by process \\d+ \\(node`)),
      }),
    ])
  } finally {
    server.close()
  }
})

test('a person who needs another login for the schema gets its flag, and with it the schema is migrated', async () => {
  const empty = await emptyDatabase()
  try {
    // The database's own login brings it up itself.
    const own = { DATABASE_URL: empty.url, TEMPORAL_NAMESPACE: await freshNamespace() }
    const { code, stdout } = await setup(['--json', '--no-alert'], own)
    expect([code, statesOf(stdout)]).toMatchObject([0, { PostgreSQL: 'works', schema: 'made' }])
    expect(rowsOf(stdout).find(({ step }) => step === 'PostgreSQL')?.remedy).toContain('owns the database')
  } finally {
    await empty.drop()
  }
})

test('without a terminal each missing answer is named by its flag, and nothing is asked', async () => {
  const bare = await runCli(['setup', '--settings', file])
  expect(bare.code).toBe(2)
  for (const flag of [
    '--base-url (LLM_BASE_URL)',
    '--database-url (DATABASE_URL)',
    '--temporal-address (TEMPORAL_ADDRESS)',
    '--public-url (PUBLIC_URL)',
  ])
    expect(bare.stderr).toContain(flag)
  const oneLacks = await setup([], { LLM_BASE_URL: null })
  expect([oneLacks.code, oneLacks.stderr]).toEqual([2, expect.stringContaining('or --no-model')])
  const withoutModel = await setup(['--no-model', '--json', '--no-alert'], { LLM_BASE_URL: null })
  expect([withoutModel.code, statesOf(withoutModel.stdout).model]).toEqual([0, 'left out'])
  expect(readFileSync(file, 'utf8')).not.toContain('AGENT_ENABLED')
})

test('answers that are not settings, and a file that cannot be written, are refused before anything is asked', async () => {
  const unknown = await setup([], { LLM_MODLE: 'x', SHOE_SIZE: '43' })
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('no settings: LLM_MODLE, SHOE_SIZE')])
  const prose = join(place.path, 'prose')
  writeFileSync(prose, '{ "LLM_MODEL": "x" }')
  const notLines = await runCli(['setup', '--settings', file, '--answers', prose])
  expect([notLines.code, notLines.stderr]).toEqual([2, expect.stringContaining('NAME=value')])
  const closed = join(place.path, 'closed')
  mkdirSync(closed)
  chmodSync(closed, 0o500)
  const asRoot = process.getuid?.() === 0
  for (const [path, said] of [
    [join(place.path, 'nowhere', 'nightshift.env'), /The folder .*nowhere does not exist/],
    [join(prose, 'nightshift.env'), /is not a folder/],
    ...(asRoot ? [] : [[join(closed, 'nightshift.env'), /cannot be written by this user/] as const]),
  ] as const) {
    const { code, stderr } = await runCli(['setup', '--settings', path, '--answers', answersFile()])
    expect([code, stderr]).toEqual([1, expect.stringMatching(said)])
  }
  expect(model.asked.filter(({ model: name }) => name === 'x')).toEqual([])
})

test('if an API answers, one test alert is sent, followed and closed as no fault, and is not sent again', async () => {
  const own = {
    PORT: new URL(api.apiUrl).port,
    BOOTSTRAP_ADMIN_TOKEN_FILE: tokenFile(api.tokens.admin),
    BOOTSTRAP_INGEST_TOKEN_FILE: tokenFile(api.tokens.ingest),
  }
  const { code, stdout } = await setup(['--json', '--wait', '3'], own)
  const tried = rowsOf(stdout).find(({ step }) => step === 'test alert')
  // This API has no worker, so nothing takes it up, and that is what is said.
  expect([code, tried]).toEqual([
    1,
    {
      step: 'test alert',
      state: 'failed',
      detail: expect.stringMatching(
        /inc_\w+ opened, but the agent did not investigate it: .*; setup closed it as no fault: https:\/\/nightshift\.example\.com\/incidents\/inc_/,
      ),
      remedy: expect.stringContaining('nightshift doctor'),
    },
  ])
  const id = /inc_\w+/.exec(tried!.detail)![0]
  const { body } = await api.get(`/incidents/${id}`)
  expect(body).toMatchObject({
    status: 'resolved',
    outcome: 'no_fault',
    closedBy: 'person',
    type: 'nightshift_setup_test',
    alerts: { firing: 0 },
  })
  const second = await setup(['--json'], own)
  expect(rowsOf(second.stdout).find(({ step }) => step === 'test alert')).toMatchObject({
    state: 'there',
    detail: expect.stringContaining(id),
  })
  const third = await setup(['--json', '--again', '--wait', '1'], own)
  expect(rowsOf(third.stdout).find(({ step }) => step === 'test alert')?.detail).not.toContain(id)
})

/** A person at a terminal: waits for each question and types the answer. Answers what was shown. */
async function atTerminal(
  args: string[],
  lines: [question: string, typed: string][],
): Promise<{ code: number | null; shown: string }> {
  const entry = join(import.meta.dirname, '../../../cli/main.ts')
  const line = [process.execPath, '--disable-warning=ExperimentalWarning', entry, ...args]
  const child = spawn('script', ['--quiet', '--return', '--command', line.join(' '), '/dev/null'], {
    env: { PATH: process.env.PATH, HOME: emptyDir, NIGHTSHIFT_STATE_DIR: emptyDir, NO_COLOR: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let from = 0
  child.stdout.on('data', (chunk) => {
    shown += chunk
    const [next] = lines
    const at = next ? shown.indexOf(next[0], from) : -1
    if (next === undefined || at < 0) return
    from = at + next[0].length
    lines.shift()
    child.stdin.write(next[1])
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, shown }
}

test('a person is asked, told each error at once, and asked again, and a password is not shown', async () => {
  const { code, shown } = await atTerminal(
    ['setup', '--settings', file, '--no-alert', '--port', String(freePortOfTests)],
    [
      ["The model's server", `${model.url}/v1\n`],
      ['The name of the model', 'nobody\n'],
      ['A file with the key of the server', `${keyFile()}\n`],
      ["The model's server", '\n'],
      ['The name of the model at that server [nobody]', 'qwen3-8b.gguf\n'],
      ['A file with the key of the server', '\n'],
      ['PostgreSQL, as', `${database.url}\n`],
      ['Temporal, as host:port [127.0.0.1:7233]', `${temporal}\n`],
      ['The address that people', '\n'],
    ],
  )
  expect(shown).toContain('There is no model nobody')
  expect(shown).toMatch(/✔ settings +written/)
  expect(shown).not.toContain(new URL(database.url).password)
  expect(code).toBe(0)
  expect(readFileSync(file, 'utf8')).toContain(`PUBLIC_URL=http://127.0.0.1:${freePortOfTests}\n`)
})

test('Ctrl-C in the middle leaves nothing behind', async () => {
  const { code } = await atTerminal(
    ['setup', '--settings', file],
    [
      ["The model's server", `${model.url}/v1\n`],
      ['The name of the model', 'qwen3-8b.gguf\n'],
      ['A file with the key of the server', `${keyFile()}\n`],
      ['PostgreSQL, as', '\u0003'],
    ],
  )
  expect(code).toBe(130)
  expect(written()).toEqual([])
  expect(existsSync(file)).toBe(false)
})
