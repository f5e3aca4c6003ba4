import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { FirstRunTokens } from '../../db/access/tokens.ts'

const rootDir = fileURLToPath(new URL('../..', import.meta.url))
const cache = join(rootDir, '.cache', 'builds')
const maxBytes = 400_000_000

/** Another commit of this repository, unpacked with the packages of its own lock file. */
export type OtherBuild = { name: string; commit: string; tree: string }

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: rootDir, maxBuffer: maxBytes, stdio: ['ignore', 'pipe', 'pipe'] })

/**
 * Brings a commit into `.cache/builds`, once: its tree from history, its packages from the
 * registry, or those of this tree where the lock file is the same. Throws one sentence where
 * history or registry has none of it.
 */
export function bringBuild(name: string, commit: string): OtherBuild {
  const tree = join(cache, commit.slice(0, 12))
  const whole = join(tree, '.whole')
  if (existsSync(whole)) return { name, commit, tree }
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(tree, { recursive: true })
  try {
    execFileSync('tar', ['x', '-C', tree], { input: git('archive', commit) })
  } catch {
    throw new Error(
      `The history of this checkout has no ${commit}, which is ${name}: fetch it with "git fetch --unshallow".`,
    )
  }
  const lockOf = (dir: string) => readFileSync(join(dir, 'package-lock.json'), 'utf8')
  if (lockOf(tree) === lockOf(rootDir)) symlinkSync(join(rootDir, 'node_modules'), join(tree, 'node_modules'))
  else installPackages(name, tree)
  writeFileSync(whole, '')
  return { name, commit, tree }
}

function installPackages(name: string, tree: string): void {
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  try {
    execFileSync('npm', args, { cwd: tree, stdio: ['ignore', 'ignore', 'pipe'] })
  } catch (error) {
    const code = /npm error code (\S+)/.exec(String((error as { stderr?: Buffer }).stderr))?.[1] ?? 'no code'
    throw new Error(`The packages of ${name} were not installed (npm: ${code}): make the package registry reachable.`)
  }
}

/**
 * The last commit that did not know the newest migration of this tree: what runs beside it while an
 * upgrade goes on.
 */
export function commitBeforeNewestMigration(): string {
  const newest = readdirSync(join(rootDir, 'migrations'))
    .filter((file) => /^\d{4}-.*\.ts$/.test(file))
    .sort()
    .at(-1)
  const added = git('log', '--diff-filter=A', '--format=%H', '-1', '--', `migrations/${newest}`).toString().trim()
  // A migration that is not committed yet is known to no commit.
  return git('rev-parse', added === '' ? 'HEAD' : `${added}^`)
    .toString()
    .trim()
}

/** Migrates an empty database as that build does, and makes the tokens of its first start. */
export function prepareWith({ tree }: OtherBuild, databaseUrl: string): FirstRunTokens {
  const at = (path: string) => JSON.stringify(pathToFileURL(join(tree, path)).href)
  const tokens = existsSync(join(tree, 'db/access/tokens.ts')) ? 'db/access/tokens.ts' : 'db/tokens.ts'
  const program = `
    const { migrateToLatest } = await import(${at('migrations/migrate.ts')})
    const { connect } = await import(${at('db/connect.ts')})
    const { ensureFirstRunTokens } = await import(${at(tokens)})
    await migrateToLatest(process.env.DATABASE_URL)
    const db = connect(process.env.DATABASE_URL, { max: 1 })
    const tokens = await ensureFirstRunTokens(db)
    await db.destroy()
    process.stdout.write(JSON.stringify(tokens))`
  return JSON.parse(String(runIn(tree, program, databaseUrl))) as FirstRunTokens
}

function runIn(tree: string, program: string, databaseUrl: string): Buffer {
  return execFileSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    {
      cwd: tree,
      env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
}
