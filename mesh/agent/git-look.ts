import { existsSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type GitSetting, gitSettingsIn, oddGitSetting } from '../../safety/command/surroundings/git-settings.ts'
import { isInside } from '../held.ts'
import type { CapabilityContext } from './capability.ts'
import { writersOf } from './root-read.ts'

/** More than these nobody looks at for one read. */
const mostRepositories = 40

/** Four lines in base64: what a program prints reaches us as plain text otherwise, and a name must not be another one by then. */
const script = `
line() { base64 | tr -d '\\n'; echo; }
git rev-parse --absolute-git-dir 2>/dev/null | line
git rev-parse --show-toplevel 2>/dev/null | line
{ git config --list --includes -z --show-scope --show-origin && printf 'end\\0'; } | line
{ git ls-files --stage -z --full-name :/ 2>/dev/null && printf 'end\\0'; } | LC_ALL=C grep -az -e '^160000 ' -e '^end$' | line`

type Look = Pick<CapabilityContext, 'run'>

/**
 * Why a read by git in this directory could obey somebody: a setting, there or in a submodule that git would enter, does more than describe
 * the repository. Null when none does. Asked of git itself, confined and with the same environment, so that it is what the read will find.
 */
export async function whyNotPlainGit(
  directory: string,
  environment: Record<string, string>,
  { run }: Look,
): Promise<string | null> {
  const waiting = [directory]
  const seen = new Set<string>()
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    const real = realOf(at)
    if (real === null || seen.has(real)) continue
    if (seen.size >= mostRepositories) return 'it has more submodules than are looked at'
    seen.add(real)
    const read = await readAt(real, environment, run)
    if (!read) return `the settings of git in ${at} cannot be read`
    const { gitDirectory, top, settings, links } = read
    const isOwnWorkTree = (value: string) => {
      const tree = realOf(resolve(gitDirectory, value))
      return tree !== null && tree !== '/' && isInside(real, tree) && existsSync(join(tree, '.git'))
    }
    const odd = oddGitSetting(settings, (file) => writersOf(namedBy(file, gitDirectory)) === 'root', isOwnWorkTree)
    if (odd) return `git would obey its setting ${odd.key} in ${at}`
    for (const link of links) {
      const inside = join(top, link)
      if (existsSync(join(inside, '.git'))) waiting.push(inside)
    }
  }
  return null
}

/** A setting of the repository's own file is said to be from a relative path; any other relative one is not followed. */
function namedBy(file: string, gitDirectory: string): string {
  if (file.startsWith('/')) return file
  return file === '.git/config' || file === 'config' ? join(gitDirectory, 'config') : ''
}

type Found = { gitDirectory: string; top: string; settings: GitSetting[]; links: string[] }

/** Git writes it last, when nothing failed before. */
const ending = 'end\0'
const isWhole = (part: string): boolean => part === ending || part.endsWith(`\0${ending}`)

async function readAt(cwd: string, env: Record<string, string>, run: Look['run']): Promise<Found | null> {
  const ran = await run(['/bin/sh', '-c', script], { cwd, env, confine: 'read' })
  const lines = ran.stdout.split('\n').map((line) => Buffer.from(line, 'base64').toString('utf8'))
  // Five, with what follows the last one; a name in another encoding is one that nobody here could follow.
  if (ran.exitCode !== 0 || ran.truncated || lines.length !== 5 || lines.join('').includes('\ufffd')) return null
  const [gitDirectory, top, listed, stage] = lines as [string, string, string, string, string]
  const settings = isWhole(listed) ? gitSettingsIn(listed.slice(0, -ending.length)) : null
  // What has no work tree has no submodules in it.
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
