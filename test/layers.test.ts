import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'

/**
 * `layers.json` says which folder may import which. Lint's rules and the column of
 * docs/explanation/architecture.md are written from it by `UPDATE=1 npm test -- test/layers`.
 */
type Layer = {
  folder: string
  mayImport: string[]
  /** Parts of the folders above that it may not import. */
  except?: string[]
  /** Single files of folders that it may not import. */
  also?: string[]
  because?: string
}

const layers = JSON.parse(readFileSync('layers.json', 'utf8')) as Layer[]
const folders = readdirSync('.', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  .map(({ name }) => name)
  .filter((name) => !['node_modules', 'config'].includes(name))
  .filter((name) => readdirSync(name, { recursive: true, encoding: 'utf8' }).some((file) => /\.tsx?$/.test(file)))

/** As a reader of the table needs it: `mesh (not agent/**), and safety/redact.ts`. */
function describeImports({ mayImport, except = [], also = [] }: Layer): string {
  const named = mayImport.map((folder) => {
    const not = except.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1))
    return not.length > 0 ? `${folder} (not ${not.join(', ')})` : folder
  })
  return [...named, ...also].join(', ') || 'no other folder'
}

function lintRule(layer: Layer) {
  const { folder, mayImport, except = [], also = [], because } = layer
  const denied = folders.filter((each) => each !== folder && !mayImport.includes(each)).map((each) => `**/${each}/**`)
  const group = [...denied, ...except.map((path) => `**/${path}`), ...also.map((path) => `!**/${path}`)]
  const message = `${folder}/ may import ${describeImports(layer)}${because ? `: ${because}` : ''} (layers.json)`
  const noRestrictedImports = { level: 'error', options: { patterns: [{ group, message }] } }
  // The pages are the one folder with React in it.
  const domains = folder === 'web' ? { domains: { react: 'recommended' } } : {}
  return { includes: [`${folder}/**`], linter: { ...domains, rules: { style: { noRestrictedImports } } } }
}

/** Readers of the environment, and why; all other code is given what config/ has read. */
const environmentReaders: Record<string, string> = {
  'config/**': 'it is what reads it',
  '**/main.ts': 'a process begins here',
  'mesh/agent/ready.ts': 'a program of its own, which a container asks whether the agent is ready',
  'bin/**': 'a process begins here, and hands its environment on',
  'start/**': 'it hands its environment to the processes that it starts',
  'cli/**': 'a person starts a command, and says by variables what options say else',
  'bench/**': 'each measurement is a program of its own',
  'test/**': 'tests play every part',
  'examples/**': 'they stand for programs of others',
  '*.config.js': 'a tool reads it',
}

const environmentRule = {
  includes: Object.keys(environmentReaders),
  linter: { rules: { style: { noProcessEnv: 'off' } } },
}

function withColumn(page: string): string {
  return layers.reduce((text, layer) => {
    const row = new RegExp(`^(\\| \`${layer.folder}/\` \\| .* \\| )[^|]*( \\|)$`, 'm')
    expect(text).toMatch(row)
    return text.replace(row, (_, start, end) => `${start}${describeImports(layer)}${end}`)
  }, page)
}

const page = 'docs/explanation/architecture.md'
const biome = JSON.parse(readFileSync('biome.json', 'utf8'))
const wanted = { ...biome, overrides: [...layers.map(lintRule), environmentRule] }

if (process.env.UPDATE === '1') {
  writeFileSync('biome.json', `${JSON.stringify(wanted, null, 2)}\n`)
  writeFileSync(page, withColumn(readFileSync(page, 'utf8')))
}

test("lint's rules about imports are those of layers.json", () => {
  expect(biome.overrides).toEqual(wanted.overrides)
})

test('the table of the architecture page is that of layers.json', () => {
  expect(readFileSync(page, 'utf8')).toBe(withColumn(readFileSync(page, 'utf8')))
})

/** Ways to the environment that lint's rule about `process.env` does not see. */
const otherWays = new RegExp(
  [
    /\{[^{}]*\benv\b[^{}]*\}\s*=\s*(?:globalThis\.)?process\b(?!\.)/,
    /\bprocess\s*\[/,
    /\bglobalThis\s*\.\s*process\b/,
    /\bfrom\s*['"](?:node:)?process['"]/,
    /\b(?:import|require)\s*\(\s*['"](?:node:)?process['"]/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

test('the environment is read only where lint allows it', () => {
  const readers = Object.keys(environmentReaders).map(
    (glob) =>
      new RegExp(
        `^${glob
          .replace(/\./g, '\\.')
          .replace(/\*\*\/?/g, '(?:.+/)?')
          .replace(/(?<!\))\*/g, '[^/]*')}`,
      ),
  )
  const sources = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js'], { encoding: 'utf8' }).trim().split('\n')
  const others = sources.filter((path) => existsSync(path) && !readers.some((reader) => reader.test(path)))
  expect(others.length).toBeGreaterThan(500)
  expect(others.filter((path) => otherWays.test(readFileSync(path, 'utf8')))).toEqual([])
})

test.each([
  ['const { env } = process', true],
  ['const { argv, env: given } = globalThis.process', true],
  ["import process from 'node:process'", true],
  ["import * as own from 'node:process'", true],
  ["import { env } from 'process'", true],
  ["await import('node:process')", true],
  ["process['env']", true],
  ['const { kernel_thread, ...rest } = process', false],
  ['process.pid', false],
])('%j is a way to the environment: %j', (text, isWay) => {
  expect(otherWays.test(text)).toBe(isWay)
})

test('every folder that a rule names exists', () => {
  const named = layers.flatMap(({ folder, mayImport }) => [folder, ...mayImport])
  expect(named.filter((folder) => !folders.includes(folder))).toEqual([])
})

/**
 * Queries that decide nothing about who may read: the clock, what is checked as a whole, what
 * follows an incident that was just found.
 */
const withoutScope = ['databaseTime', 'verifyAudit', 'verifyNext', 'verifyIncident', 'verifyChangesOf', 'verifyChain']
const ofFoundIncident = ['goneOrMissing', 'eventsOf', 'alertsOf', 'waitOf', 'beganAt', 'requesterOf']
const ofProcess = [
  'pushKeys',
  'scopeOf',
  'createFeed',
  'createLiveAnswers',
  'readSettings',
  'listSources',
  'readSiteFile',
  'placementState',
]

test('a route reads for a caller through the scope of that caller', () => {
  const reads = readdirSync('api/routes').flatMap((file) => {
    const text = readFileSync(`api/routes/${file}`, 'utf8')
    return text
      .split(/(?=method: ')/)
      .filter((part) => part.startsWith("method: 'get'"))
      .map((part) => part.slice(0, part.search(/\n(?:\}|\}\)| {2}\}\),?)\n/)))
      .flatMap((part) => [...part.matchAll(/\b(\w+)\((?:deps\.)?db\b/g)].map(([, name]) => `${file}: ${name}`))
  })
  const allowed = [...withoutScope, ...ofFoundIncident, ...ofProcess]
  expect(reads.filter((read) => !allowed.includes(read.replace(/.*: /, '')))).toEqual([])
  expect(reads.length).toBeGreaterThan(5)
})
