import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from '@jest/globals'

const pages = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file)),
]
const folders = readdirSync('.', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
  .map(({ name }) => name)

const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
)

/** GitHub's anchor of a heading: lower case, signs gone, spaces to hyphens. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[`*]/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

const anchorsOf = (file: string) =>
  [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, text]) => anchorOf(text!))

test.each(pages)('every link of %s leads to an existing file and heading', (page) => {
  const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to!)
  const broken = links
    .filter((to) => !/^[a-z]+:/.test(to))
    .filter((to) => {
      const [path = '', anchor] = to.split('#')
      const file = path === '' ? page : normalize(join(dirname(page), path))
      return !existsSync(file) || (anchor !== undefined && !anchorsOf(file).includes(anchor))
    })
  expect(broken).toEqual([])
})

test.each(pages)('every file of the repository that %s names exists', (page) => {
  // A release's old name may stand in the changelog.
  expect(page === 'CHANGELOG.md' ? [] : misnamed(readFileSync(page, 'utf8'))).toEqual([])
})

test.each([
  ['a file that there is not', 'read by `no-such-reader.ts`', ['no-such-reader.ts']],
  ['a file in the wrong folder', 'read by `api/append.ts`', ['api/append.ts']],
  ['the end of a path that there is not', 'read by `log/no-such-reader.ts`', ['log/no-such-reader.ts']],
  ['a file of another folder in the row of a folder', '| `safety/` | `append.ts` | domain |', ['append.ts in safety/']],
  ['a room of another folder in the row of a folder', '| `safety/` | `routes/` | domain |', ['routes/ in safety/']],
  ['tests that there are not', 'run `npm test -- test/no-such-folder`', ['test/no-such-folder']],
  [
    'what is there',
    '`append.ts`, `log/append.ts`, `db/`, `test/db/log/append`, `*/main.ts` and `clouds.yml` of a site',
    [],
  ],
])('%s is found', (_what, text, found) => {
  expect(misnamed(text)).toEqual(found)
})

/**
 * The names in back quotes that lead nowhere: a path from one of our folders, the end of one, or a
 * name alone. Names that do not end in `.ts` may be anybody's. In the row of a folder a name is of
 * that folder.
 */
function misnamed(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const [, folder] = /^\| `([\w./-]+\/)` \|/.exec(line) ?? []
    const named = [...line.matchAll(/`([^`]+)`/g)].flatMap(([, words]) => words!.split(/\s+/))
    return named.flatMap((name) => {
      if (isTop(name)) return isThere(name) ? [] : [name]
      const end = name.replace(/^\*\//, '')
      if (folder && /^[\w-]+\/$/.test(end)) return existsSync(join(folder, end)) ? [] : [`${name} in ${folder}`]
      if (!/^[\w-][\w./-]*\.tsx?$/.test(end)) return []
      const found = files.filter((file) => `/${file}`.endsWith(`/${end}`))
      if (found.length === 0) return [name]
      return folder && !found.some((file) => file.startsWith(folder)) ? [`${name} in ${folder}`] : []
    })
  })
}

/** A path that begins with one of our folders. */
function isTop(name: string): boolean {
  return /^[a-z][\w.-]*\/[\w./-]*$/.test(name) && folders.includes(name.split('/')[0]!)
}

const code = files
  .filter((file) => /\.(?:tsx?|js)$/.test(file) && !/^(?:web\/dist|test\/docs)/.test(file))
  .map((file) => readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, ''))
const identifiers = new Set(code.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []))

/** The names of code in back quotes that no code has: `earlierDecision`, `append()`, `<Inert>`. */
function unknownNames(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].flatMap(([, words = '']) => {
    const [, name = '', end] = /^<?([A-Za-z]\w*)(\([^)]*\)|>)?$/.exec(words) ?? []
    return (end || /^[a-z]+[A-Z]/.test(name)) && !identifiers.has(name) ? [name] : []
  })
}

test.each(pages.filter((page) => page === 'AGENTS.md' || page.startsWith('docs/contributing/')))(
  'every name of code in %s is in the code',
  (page) => {
    expect(unknownNames(readFileSync(page, 'utf8'))).toEqual([])
  },
)

test('a name that is not in the code is found', () => {
  expect(
    unknownNames('`noSuchName`, `noSuchCall(trx, 1)`, `nosuchword()`, `<NoSuch>`, `earlierDecision`, `append()`'),
  ).toEqual(['noSuchName', 'noSuchCall', 'nosuchword', 'NoSuch'])
})

/** Node's own. */
const othersSettings = new Set(['NODE_EXTRA_CA_CERTS'])

/** Settings and codes in back quotes that no code has: `NO_SUCH_SETTING=1`. */
function unknownSettings(text: string): string[] {
  const named = [...text.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?==|`)/g)].map(([, name = '']) => name)
  // A secret may lie in a file: its setting is that of the secret.
  return named.filter(
    (name) => ![name, name.replace(/_FILE$/, '')].some((each) => identifiers.has(each)) && !othersSettings.has(name),
  )
}

test.each(pages.filter((page) => page !== 'CHANGELOG.md'))(
  'every setting and every code that %s names is in the code',
  (page) => {
    expect(unknownSettings(readFileSync(page, 'utf8'))).toEqual([])
  },
)

test('a setting that is not in the code is found', () => {
  expect(unknownSettings('`NO_SUCH_SETTING`, `NO_SUCH_OTHER=1`, `KNOWLEDGE_PATH`, `UNDO_MOVED_ON`')).toEqual([
    'NO_SUCH_SETTING',
    'NO_SUCH_OTHER',
  ])
})

/**
 * As it stands, or for tests as jest finds it: by the beginning of its name. `web/dist` is built.
 */
function isThere(path: string): boolean {
  if (existsSync(path) || path.startsWith('web/dist')) return true
  return path.startsWith('test/') && files.some((file) => file.startsWith(path) && file.endsWith('.test.ts'))
}

test('no file contains the marks of an unfinished merge', () => {
  const found = spawnSync('git', ['grep', '-nE', '^(<{7}|>{7}) '], { encoding: 'utf8' })
  expect([found.status, found.stdout]).toEqual([1, ''])
})
