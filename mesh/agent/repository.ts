import { join } from 'node:path'
import type { Manifest } from '../../domain/mesh.ts'
import { stripText } from '../../safety/redact.ts'
import { type CapabilityContext, CapabilityError, type RunOptions, type RunResult } from './capability.ts'
import { type ManifestPath, missingProc, missingWritableRoot } from './manifest.ts'
import { isInstalled, systemPath } from './programs.ts'
import { readWhole } from './replace.ts'
import { assertDirectory, type OpenEntry, openContent, openEntry, withEntryAt } from './walk.ts'

/**
 * Runs git so that no setting of the device or the repository can start a program, ask a question
 * or lead elsewhere. git opens files by name, so a user who may rename inside the repository could
 * undo the checks of `checkoutAt`. Therefore the repository must belong to the agent's user, who
 * could run programs anyway.
 */

const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.attributesFile=/dev/null',
  'core.excludesFile=/dev/null',
  'core.pager=cat',
  'core.editor=false',
  'credential.helper=',
  'core.askPass=',
  'http.followRedirects=false',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'push.gpgSign=false',
  'submodule.recurse=false',
  'core.quotePath=true',
  'gc.auto=0',
  'maintenance.auto=false',
  'push.followTags=false',
  'push.recurseSubmodules=no',
]

/** Builds a git command. `safe.directory` is set because the agent checks the owner itself. */
export const git = (...words: readonly string[]) => [
  'git',
  '--no-pager',
  '--literal-pathspecs',
  '--no-replace-objects',
  ...[...settings, 'safe.directory=*'].flatMap((setting) => ['-c', setting]),
  ...words,
]

/**
 * Returns the environment of git. `local` also allows a repository on this machine, whose path was
 * checked.
 */
export function gitEnvironment(author: string, local = false): NonNullable<RunOptions['env']> {
  return {
    PATH: systemPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: local ? 'file' : 'https:ssh',
    GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ForwardAgent=no',
    GIT_OPTIONAL_LOCKS: '0',
    ...identityOf(author),
  }
}

/**
 * Returns the author of commits, because the agent's home has no git settings and git needs a name.
 */
export const identityOf = (author: string) => ({
  GIT_AUTHOR_NAME: 'Nightshift',
  GIT_AUTHOR_EMAIL: author,
  GIT_COMMITTER_NAME: 'Nightshift',
  GIT_COMMITTER_EMAIL: author,
})

/**
 * Settings that only describe a repository. Any other setting could start a program or lead to
 * files elsewhere.
 */
const harmless =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|safecrlf|eol|symlinks|sharedrepository|abbrev|quotepath|compression)|user\.(?:name|email)|remote\.[^\n]*\.(?:url|pushurl|fetch|tagopt|prune)|branch\.[^\n]*\.(?:remote|merge|rebase|description)|extensions\.objectformat|init\.defaultbranch|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:ff|conflictstyle)|diff\.(?:renames|algorithm)|receive\.denynonfastforwards|receive\.denydeletes|gc\.(?:auto|pruneexpire|reflogexpire)|submodule\.(?:active|[^\n]*\.(?:url|active))|color\.[^\n]*|advice\.[a-z]+|i18n\.[a-z]+)$/i

/**
 * Checks a checkout: a directory of the agent's user with a real `.git` in it, only harmless
 * settings, and no objects elsewhere. Returns the text of its settings. Throws if a check fails.
 */
export async function checkoutAt(place: ManifestPath, context: CapabilityContext): Promise<string> {
  return withEntryAt(place, async (directory) => {
    assertDirectory(directory)
    assertOwn(directory)
    const inside = await openEntry(directory, '.git')
    if (!inside) throw new CapabilityError('not_found', `${place.path} is not a git checkout`)
    try {
      assertDirectory(inside)
      return await assertPlain(inside, place.path, context)
    } finally {
      await inside.handle.close()
    }
  })
}

/** Checks a bare repository like a checkout, before a push to it or a clone from it. */
export async function requireBareAt(place: ManifestPath, context: CapabilityContext): Promise<void> {
  await withEntryAt(place, async (directory) => {
    assertDirectory(directory)
    const inside = await openEntry(directory, '.git')
    await inside?.handle.close()
    if (inside)
      throw new CapabilityError(
        'invalid_arguments',
        `${place.path} is a checkout, but only a bare repository is allowed here`,
      )
    await assertPlain(directory, place.path, context)
  })
}

/**
 * Requires that the directory belongs to the agent's user. Another owner could change the settings
 * after the check, and could not use the files that the agent leaves there.
 */
export function assertOwn({ stat, path }: OpenEntry): void {
  const own = process.getuid!()
  if (stat.uid !== BigInt(own))
    throw new CapabilityError(
      'failed',
      `${path} belongs to user ${stat.uid}, and the agent runs as ${own}: new files of git would not be writable for that user`,
    )
  if ((stat.mode & 0o002n) !== 0n) throw new CapabilityError('failed', `every user may write to ${path}`)
}

async function assertPlain(directory: OpenEntry, path: string, context: CapabilityContext): Promise<string> {
  assertOwn(directory)
  await assertNone(directory, ['commondir'], `${path} shares its repository with another checkout`)
  await assertNone(directory, ['objects', 'info', 'alternates'], `${path} keeps objects in another directory`)
  const text = await settingsIn(directory)
  // Requires plain text, because git's output reaches the agent cleaned, and a name could differ.
  if (stripText(text) !== text)
    throw new CapabilityError('blocked', `the settings of ${path} have invisible characters`)
  const odd = (await askSettings(text, ['--list', '--name-only'], context)).find((key) => !harmless.test(key))
  if (odd)
    throw new CapabilityError(
      'blocked',
      `the repository's own setting ${odd} could start a program or point to another place`,
    )
  return text
}

async function assertNone(directory: OpenEntry, names: readonly string[], why: string): Promise<void> {
  let held: OpenEntry | null = directory
  const opened: OpenEntry[] = []
  try {
    for (const name of names) {
      held = await openEntry(held, name)
      if (!held) return
      opened.push(held)
    }
    throw new CapabilityError('blocked', why)
  } finally {
    for (const { handle } of opened) await handle.close()
  }
}

async function settingsIn(directory: OpenEntry): Promise<string> {
  const held = await openEntry(directory, 'config')
  if (!held) return ''
  try {
    const file = await openContent(held)
    try {
      return (await readWhole(file, held.path, AbortSignal.timeout(10_000))).toString('utf8')
    } finally {
      await file.close()
    }
  } finally {
    await held.handle.close()
  }
}

/**
 * Reads settings with git from its standard input, so that git includes no files. Returns one value
 * per line.
 */
export async function askSettings(
  text: string,
  words: readonly string[],
  context: CapabilityContext,
): Promise<string[]> {
  const ran = await context.run(git('config', '--file', '-', '--no-includes', ...words), {
    env: gitEnvironment(authorOf(context)),
    input: text,
    confine: 'read',
  })
  // Accepts exit code 1, which means that there is no matching setting.
  if ((ran.exitCode !== 0 && ran.exitCode !== 1) || ran.truncated)
    throw new CapabilityError('failed', 'git cannot read the settings of the repository')
  return ran.stdout.split('\n').filter((line) => line !== '')
}

export const authorOf = ({ manifest }: Pick<CapabilityContext, 'manifest'>) => `nightshift@${manifest.device}`

/**
 * Runs git in a checkout as the agent's user, who owns the checkout. A confined user might not be
 * able to read the checkout.
 */
export function inCheckout(
  path: string,
  words: readonly string[],
  context: CapabilityContext,
  options: Partial<RunOptions> & { local?: boolean } = {},
): Promise<RunResult> {
  const { local, env, ...rest } = options
  return context.run(git(`--git-dir=${join(path, '.git')}`, `--work-tree=${path}`, ...words), {
    cwd: path,
    confine: 'write',
    ...rest,
    env: { ...gitEnvironment(authorOf(context), local), ...env },
  })
}

/** Lists files in which two trees differ, including removed files unless `removed` is false. */
export async function changed(
  path: string,
  from: string,
  to: string,
  context: CapabilityContext,
  options: { env?: Record<string, string>; removed?: boolean } = {},
): Promise<string[]> {
  const which = options.removed === false ? ['--diff-filter=d'] : []
  const words = ['diff-tree', '-r', '--name-only', '--no-renames', ...which, from, to]
  const { stdout, exitCode } = await inCheckout(path, words, context, { env: options.env })
  if (exitCode !== 0)
    throw new CapabilityError('failed', `git cannot list the changes in ${path}, or the list is too long`)
  return namesIn(stdout)
}

/**
 * Reads git's list of file names, one per line. git quotes a name with characters outside of plain
 * ASCII, with escapes as in C.
 */
export function namesIn(listing: string): string[] {
  return listing
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (line.startsWith('"') && line.endsWith('"') ? unquoted(line.slice(1, -1)) : line))
}

const escapes: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

function unquoted(text: string): string {
  const bytes: number[] = []
  for (const [part] of text.matchAll(/\\[0-7]{3}|\\.|[^\\]/g)) {
    if (!part.startsWith('\\')) bytes.push(...Buffer.from(part))
    else bytes.push(escapes[part[1]!] ?? Number.parseInt(part.slice(1), 8))
  }
  return Buffer.from(bytes).toString('utf8')
}

/** Returns what the device lacks to read repositories. Null for nothing. */
export async function missingGitToRead(manifest: Manifest): Promise<string | null> {
  return (await isInstalled('git')) ? missingProc(manifest) : 'git is not installed'
}

export async function missingGit(manifest: Manifest): Promise<string | null> {
  return (await isInstalled('git')) ? missingWritableRoot(manifest) : 'git is not installed'
}
