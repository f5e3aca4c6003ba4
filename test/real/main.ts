import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds, missingOf, unpackedAt, versionsOf, whyNot } from './kinds.ts'

/**
 * `npm run test:real -- engine`: Nightshift against real programs of one kind. What Debian packages
 * is installed by root, what is missing else is said. A run that passed is a row of
 * docs/contributing/verified.md; `--status` tells how many commits ago each was.
 */
const root = join(import.meta.dirname, '../..')
const page = join(root, 'docs/contributing/verified.md')
const list = Object.entries(kinds)
  .map(([name, { about }]) => `  ${name.padEnd(12)}${about}`)
  .join('\n')

const [kind = '', ...rest] = process.argv.slice(2)
if (kind === '--status') {
  printStatus()
  process.exit(0)
}
if (!(kind in kinds)) {
  console.error(
    `${kind === '' ? 'Name a kind' : `There is no kind "${kind}"`}: npm run test:real -- ${Object.keys(kinds).join('|')} (or --status)\n${list}`,
  )
  process.exit(2)
}
process.exit(run(kind, rest))

function run(kind: string, more: string[]): number {
  install(kind)
  const lacking = whyNot(kind)
  if (lacking) console.log(`${kind} is skipped: ${lacking}`)
  const place = mkdtempSync(join(tmpdir(), 'nightshift-real-'))
  try {
    const [summaryFile, factsFile] = [join(place, 'summary.json'), join(place, 'facts')]
    const startedAt = performance.now()
    const { status } = spawnSync(process.execPath, ['node_modules/jest/bin/jest.js', `test/real/${kind}`, ...more], {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        NIGHTSHIFT_TESTS: 'real',
        NIGHTSHIFT_JEST_SUMMARY: summaryFile,
        NIGHTSHIFT_REAL_FACTS: factsFile,
      },
    })
    const { numPassedTests: passed = 0 } = existsSync(summaryFile) ? JSON.parse(readFileSync(summaryFile, 'utf8')) : {}
    if (status !== 0 || passed === 0) return status ?? 1
    const figures = existsSync(factsFile) ? readFileSync(factsFile, 'utf8').trim().split('\n') : []
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    keep(kind, [`${passed} passed in ${seconds} s`, versionsOf(kind), figures.join(', ')])
    return 0
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Debian's packages, where root may install them. What else is missing is said by the caller. */
function install(kind: string): void {
  const missing = missingOf(kind)
  if (missing.length === 0 || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  const named = (isUnpacked: boolean) =>
    missing.filter((each) => (each.isUnpacked ?? false) === isUnpacked).flatMap((each) => each.package ?? [])
  const packages = named(false)
  console.log(`Installing ${[...packages, ...named(true).map((name) => `${name} (unpacked alone)`)].join(', ')}`)
  const options = {
    stdio: ['ignore', 'ignore', 'inherit'] as const,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  }
  spawnSync('apt-get', ['update', '-qq'], { ...options, stdio: [...options.stdio] })
  if (packages.length > 0)
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], {
      ...options,
      stdio: [...options.stdio],
    })
  if (named(true).length > 0) unpack(named(true), unpackedAt(kind))
}

/**
 * Downloads packages with those of their needs that are not here, and unpacks them: nothing of them
 * is installed or run.
 */
function unpack(packages: string[], into: string): void {
  const archives = mkdtempSync(join(tmpdir(), 'nightshift-debs-'))
  const where = ['-o', `Dir::Cache::archives=${archives}/`, '-o', 'APT::Sandbox::User=root']
  const how = ['install', '-y', '-qq', '--no-install-recommends', '--download-only', ...where]
  spawnSync('apt-get', [...how, ...packages], { stdio: ['ignore', 'ignore', 'inherit'] })
  for (const name of readdirSync(archives).filter((each) => each.endsWith('.deb')))
    spawnSync('dpkg-deb', ['-x', join(archives, name), into], { stdio: 'inherit' })
  rmSync(archives, { recursive: true })
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}

function keep(kind: string, [tests, versions, figures]: string[]): void {
  const isClean =
    git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!docs/contributing/verified.md') === ''
  const commit = `${git('rev-parse', '--short=12', 'HEAD')}${isClean ? '' : ' and more'}`
  const date = new Date().toISOString().slice(0, 10)
  if (!readFileSync(page, 'utf8').endsWith('\n')) writeFileSync(page, `${readFileSync(page, 'utf8')}\n`)
  appendFileSync(page, `| ${[kind, commit, date, tests, versions, figures].join(' | ')} |\n`)
  console.log(`${kind} is verified at ${commit}: ${versions}. A row of docs/contributing/verified.md says so.`)
}

function printStatus(): void {
  const rows = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  for (const kind of Object.keys(kinds)) {
    const [, , commit = '', date, tests, versions] = rows.findLast((row) => row[1] === kind) ?? []
    console.log(
      `${kind.padEnd(12)}${commit === '' ? 'never' : `${ago(commit)} (${commit}, ${date}): ${tests}; ${versions}`}`,
    )
  }
}

function ago(commit: string): string {
  try {
    const count = Number(git('rev-list', '--count', `${commit.split(' ')[0]}..HEAD`))
    return count === 0 ? 'at this commit' : `${count} commit${count === 1 ? '' : 's'} ago`
  } catch {
    return 'at a commit that is not here'
  }
}
