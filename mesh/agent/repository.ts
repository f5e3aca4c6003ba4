import { join } from 'node:path'
import type { Manifest } from '../../domain/mesh.ts'
import { stripText } from '../../safety/redact.ts'
import { type CapabilityContext, CapabilityError, type RunOptions, type RunResult } from './capability.ts'
import { type ManifestPath, missingProc, missingWritableRoot } from './manifest.ts'
import { isInstalled, systemPath } from './programs.ts'
import { readWhole } from './replace.ts'
import { assertDirectory, type OpenEntry, openContent, openEntry, withEntryAt } from './walk.ts'

/**
 * Running git where neither the device's configuration nor the repository's own can make it start a
 * program, prompt, or go elsewhere. git walks by name, so what `at` proved can be undone by a user
 * who may rename inside the repository: that is why it must belong to the agent's own user, and
 * then they could as well run programs themselves.
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

/**
 * Everything of git starts with these; `safe.directory` since the agent has looked at the owner
 * itself.
 */
export const git = (...words: readonly string[]) => [
  'git',
  '--no-pager',
  '--literal-pathspecs',
  '--no-replace-objects',
  ...[...settings, 'safe.directory=*'].flatMap((setting) => ['-c', setting]),
  ...words,
]

/** `local` also lets git speak to a repository on this machine, after its path was looked at. */
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

/** The author of commits: the agent's home has no git settings, and git needs a name. */
export const identityOf = (author: string) => ({
  GIT_AUTHOR_NAME: 'Nightshift',
  GIT_AUTHOR_EMAIL: author,
  GIT_COMMITTER_NAME: 'Nightshift',
  GIT_COMMITTER_EMAIL: author,
})

/**
 * Settings of a repository that only describe it. Whatever else stands there could start a program
 * or lead elsewhere.
 */
const harmless =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|safecrlf|eol|symlinks|sharedrepository|abbrev|quotepath|compression)|user\.(?:name|email)|remote\.[^\n]*\.(?:url|pushurl|fetch|tagopt|prune)|branch\.[^\n]*\.(?:remote|merge|rebase|description)|extensions\.objectformat|init\.defaultbranch|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:ff|conflictstyle)|diff\.(?:renames|algorithm)|receive\.denynonfastforwards|receive\.denydeletes|gc\.(?:auto|pruneexpire|reflogexpire)|submodule\.(?:active|[^\n]*\.(?:url|active))|color\.[^\n]*|advice\.[a-z]+|i18n\.[a-z]+)$/i

/**
 * A checkout as it must be: a directory with a real `.git` in it, of the agent's own user, with no
 * settings but harmless ones and no objects elsewhere. Answers the text of its settings; throws why
 * not.
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

/** The same for a bare repository that something is pushed to or cloned from. */
export async function requireBareAt(place: ManifestPath, context: CapabilityContext): Promise<void> {
  await withEntryAt(place, async (directory) => {
    assertDirectory(directory)
    const inside = await openEntry(directory, '.git')
    await inside?.handle.close()
    if (inside)
      throw new CapabilityError('invalid_arguments', `${place.path} is a checkout: only a bare repository is spoken to`)
    await assertPlain(directory, place.path, context)
  })
}

/** Others could change its settings under our hands, and could not use what we leave in it. */
export function assertOwn({ stat, path }: OpenEntry): void {
  const own = process.getuid!()
  if (stat.uid !== BigInt(own))
    throw new CapabilityError(
      'failed',
      `${path} belongs to user ${stat.uid}, and the agent is ${own}: git would lock them out`,
    )
  if ((stat.mode & 0o002n) !== 0n) throw new CapabilityError('failed', `everybody may write to ${path}`)
}

async function assertPlain(directory: OpenEntry, path: string, context: CapabilityContext): Promise<string> {
  assertOwn(directory)
  await assertNone(directory, ['commondir'], `${path} shares its repository with another one`)
  await assertNone(directory, ['objects', 'info', 'alternates'], `${path} has objects elsewhere`)
  const text = await settingsIn(directory)
  // What a program prints reaches us as plain text: a name must not be another one by then.
  if (stripText(text) !== text) throw new CapabilityError('blocked', `the settings of ${path} hold what cannot be seen`)
  const odd = (await askSettings(text, ['--list', '--name-only'], context)).find((key) => !harmless.test(key))
  if (odd)
    throw new CapabilityError('blocked', `the repository's own setting ${odd} could start a program or lead elsewhere`)
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
 * Asks git about settings that are handed to it on its input, so that it includes no others; one
 * answer a line.
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
  // 1: there is none.
  if ((ran.exitCode !== 0 && ran.exitCode !== 1) || ran.truncated)
    throw new CapabilityError('failed', 'git cannot read the settings of the repository')
  return ran.stdout.split('\n').filter((line) => line !== '')
}

export const authorOf = ({ manifest }: Pick<CapabilityContext, 'manifest'>) => `nightshift@${manifest.device}`

/**
 * Runs git in a checkout as the agent's own user, which owns it: a confined user might not be able
 * to read it.
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

/**
 * The files in which two trees differ, also those that the second lacks, unless `removed` is false.
 */
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
  if (exitCode !== 0) throw new CapabilityError('failed', `git cannot tell what changes in ${path}, or it is too much`)
  return namesIn(stdout)
}

/**
 * The names in a list that git wrote one a line: what is not plain ASCII stands in quotes, with
 * escapes as in C.
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

/** To read a repository no root has to be writable. */
export async function missingGitToRead(manifest: Manifest): Promise<string | null> {
  return (await isInstalled('git')) ? missingProc(manifest) : 'git is not installed'
}

export async function missingGit(manifest: Manifest): Promise<string | null> {
  return (await isInstalled('git')) ? missingWritableRoot(manifest) : 'git is not installed'
}
