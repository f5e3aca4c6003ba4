import { existsSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { RootRead } from '../../safety/command/analysis.ts'
import { oddDockerSettings, oddKubeconfig, oddSetting } from '../../safety/command/surroundings/clients.ts'
import { type GitSetting, gitSettingsIn, oddGitSetting } from '../../safety/command/surroundings/tools.ts'
import type { CallCondition } from '../../safety/command/surroundings.ts'
import { isInside } from '../specs/spec.ts'
import type { AgentSight, CapabilityContext } from './capability.ts'
import type { Confinement } from './confine.ts'
import { homeOf } from './programs.ts'
import { whyNoRootRead, writableBelow, writersOf } from './root-read.ts'

/** Conditions of a call without approval, besides its command line. */
export type Preconditions = {
  conditions: readonly CallCondition[]
  sees: readonly AgentSight[]
  /** The directory in which the command runs; `environment` has its variables. */
  cwd: string
  environment: Record<string, string>
  /** A command that reads as root, outside of the sandbox. */
  rootRead: RootRead | null
}

/**
 * Returns why a call may not run without approval now. Null if all conditions hold. Checked right
 * before the call.
 */
export async function whyUnmet(
  { conditions, sees, cwd, environment, rootRead }: Preconditions,
  confinement: Pick<Confinement, 'canShow'>,
  context: Pick<CapabilityContext, 'run'>,
): Promise<string | null> {
  if (!confinement.canShow(sees)) return `in its sandbox this device cannot show the real ${sees.join(' and ')}`
  const why = rootRead && whyNoRootRead(rootRead)
  if (why) return `${rootRead.argv[0]} as root: ${why}`
  for (const condition of conditions) {
    const places = condition.directories.length === 0 ? [cwd] : condition.directories.map((at) => resolve(cwd, at))
    const why = await whyOne(condition, places, environment, context)
    if (why !== null) return `${condition.program}: ${why}`
  }
  return null
}

async function whyOne(
  condition: CallCondition,
  places: readonly string[],
  environment: Record<string, string>,
  context: Pick<CapabilityContext, 'run'>,
): Promise<string | null> {
  switch (condition.kind) {
    case 'root_only': {
      const files = condition.files.flatMap((file) => filesAt(file, places, condition.up === true))
      const [found] = files.flatMap((file) => writableBelow(file) ?? [])
      return found === undefined
        ? null
        : `the program reads settings from ${found}, which users other than root may write`
    }
    case 'git_settings': {
      for (const place of places) {
        const why = await whyNotPlainGit(place, environment, context)
        if (why !== null) return why
      }
      return null
    }
    case 'kubeconfig':
      // Imports the parser only here: most devices have no kubeconfig, and it takes memory.
      return whyFile('~/.kube/config', async (text) => oddKubeconfig((await import('yaml')).parse(text)))
    case 'docker_settings':
      return whyFile('~/.docker/config.json', (text) => oddDockerSettings(JSON.parse(text)))
    case 'java':
      return whyNoJava(condition.process)
    case 'plain_settings':
      return whyFile(condition.file, (text) => oddSetting(text, condition.keys))
  }
}

function whyNoJava(process: string): string | null {
  try {
    const program = basename(readlinkSync(`/proc/${process}/exe`).replace(/ \(deleted\)$/, ''))
    return program === 'java' ? null : `process ${process} is ${program}, which the signal of the command would end`
  } catch {
    return `the program of process ${process} cannot be read`
  }
}

const atHome = (file: string): string => (file.startsWith('~/') ? join(homeOf(), file.slice(2)) : file)

function filesAt(file: string, places: readonly string[], up: boolean): string[] {
  if (/^[~/]/.test(file)) return [atHome(file)]
  return places.flatMap((place) => (up ? aboveOf(place) : [place])).map((place) => join(place, file))
}

function aboveOf(place: string): string[] {
  return place === '/' ? ['/'] : [place, ...aboveOf(dirname(place))]
}

const largestSettings = 1 << 20

/** Checks the contents of a file, unless only root can write it. */
async function whyFile(
  name: string,
  oddIn: (text: string) => string | null | Promise<string | null>,
): Promise<string | null> {
  const file = atHome(name)
  const writers = writersOf(file)
  if (writers !== 'others') return null
  try {
    const found = statSync(file)
    if (!found.isFile() || found.size > largestSettings)
      return `the program reads settings from ${file}, which is not a plain settings file`
    const odd = await oddIn(readFileSync(file, 'utf8'))
    return odd === null ? null : `the program reads settings from ${odd} in ${file}`
  } catch {
    return `the program reads settings from ${file}, which cannot be read`
  }
}

/** The most repositories that are checked for one read. */
const maxRepositories = 40

/**
 * A script that prints facts of a repository, each line in base64. Other output reaches the agent
 * as cleaned text, in which a name could be changed.
 */
const script = `
line() { base64 | tr -d '\\n'; echo; }
git rev-parse --absolute-git-dir 2>/dev/null | line
git rev-parse --show-toplevel 2>/dev/null | line
{ git config --list --includes -z --show-scope --show-origin && printf 'end\\0'; } | line
{ git ls-files --stage -z --full-name :/ 2>/dev/null && printf 'end\\0'; } | LC_ALL=C grep -az -e '^160000 ' -e '^end$' | line`

type Prober = Pick<CapabilityContext, 'run'>

/**
 * Returns why a read by git in this directory could run another user's program: a setting does more
 * than describe the repository. Checks the directory and the submodules that git would enter. Null
 * if no setting does. Runs git itself, confined and in the environment of the later read.
 */
async function whyNotPlainGit(
  directory: string,
  environment: Record<string, string>,
  { run }: Prober,
): Promise<string | null> {
  const waiting = [directory]
  const seen = new Set<string>()
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    const real = realOf(at)
    if (real === null || seen.has(real)) continue
    if (seen.size >= maxRepositories) return 'the repository has too many submodules to check'
    seen.add(real)
    const read = await readAt(real, environment, run)
    if (!read) return `the settings of git in ${at} cannot be read`
    const { gitDirectory, top, settings, links } = read
    const isOwnWorkTree = (value: string) => {
      const tree = realOf(resolve(gitDirectory, value))
      return tree !== null && tree !== '/' && isInside(real, tree) && existsSync(join(tree, '.git'))
    }
    const odd = oddGitSetting(settings, (file) => writersOf(namedBy(file, gitDirectory)) === 'root', isOwnWorkTree)
    if (odd) return `git would use its setting ${odd.key} in ${at}`
    for (const link of links) {
      const inside = join(top, link)
      if (existsSync(join(inside, '.git'))) waiting.push(inside)
    }
  }
  return null
}

/** Resolves the path of a settings file. Only the repository's file may have a relative path. */
function namedBy(file: string, gitDirectory: string): string {
  if (file.startsWith('/')) return file
  return file === '.git/config' || file === 'config' ? join(gitDirectory, 'config') : ''
}

type GitFacts = { gitDirectory: string; top: string; settings: GitSetting[]; links: string[] }

/** The mark that the script prints last, if nothing failed before. */
const ending = 'end\0'
const isWhole = (part: string): boolean => part === ending || part.endsWith(`\0${ending}`)

async function readAt(cwd: string, env: Record<string, string>, run: Prober['run']): Promise<GitFacts | null> {
  const ran = await run(['/bin/sh', '-c', script], { cwd, env, confine: 'read' })
  const lines = ran.stdout.split('\n').map((line) => Buffer.from(line, 'base64').toString('utf8'))
  // Expects five lines, the last empty. A name in another encoding cannot be followed.
  if (ran.exitCode !== 0 || ran.truncated || lines.length !== 5 || lines.join('').includes('\ufffd')) return null
  const [gitDirectory, top, listed, stage] = lines as [string, string, string, string, string]
  const settings = isWhole(listed) ? gitSettingsIn(listed.slice(0, -ending.length)) : null
  // Requires the list of submodules only with a working tree, because a repository without one has
  // no submodules.
  if (!settings || (top !== '' && !isWhole(stage))) return null
  const links = stage
    .split('\0')
    .flatMap((line) => (line.startsWith('160000 ') ? [line.slice(line.indexOf('\t') + 1)] : []))
  const withoutNewline = (line: string) => line.replace(/\n$/, '')
  return { gitDirectory: withoutNewline(gitDirectory), top: withoutNewline(top), settings, links }
}

function realOf(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
