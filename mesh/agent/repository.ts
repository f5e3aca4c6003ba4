import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { CapabilityContext, RunOptions, RunResult } from './capability.ts'
import { systemPath } from './programs.ts'
import { Refused } from './refused.ts'
import type { Place } from './roots.ts'
import { assertDirectory, at, entry, type Held, within } from './walk.ts'

/**
 * Running git where neither the device's configuration nor the repository's own can make it start a program, ask somebody, or go
 * elsewhere. git walks by name, so what `at` proved can be undone by whoever may rename inside the repository: that is why it
 * must belong to the agent's own user, and then they could as well run programs themselves.
 */

const settings = [
  ...[
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'core.attributesFile=/dev/null',
    'core.excludesFile=/dev/null',
  ],
  ...['core.pager=cat', 'core.editor=false', 'credential.helper=', 'core.askPass=', 'http.followRedirects=false'],
  ...['commit.gpgSign=false', 'tag.gpgSign=false', 'push.gpgSign=false', 'submodule.recurse=false'],
  ...['gc.auto=0', 'maintenance.auto=false', 'push.followTags=false', 'push.recurseSubmodules=no'],
]

/** Everything of git starts with these; `safe.directory` since the agent has looked at the owner itself. */
export const git = (...words: readonly string[]) => [
  ...['git', '--no-pager', '--literal-pathspecs', '--no-replace-objects'],
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
    GIT_AUTHOR_NAME: 'Nightshift',
    GIT_AUTHOR_EMAIL: author,
    GIT_COMMITTER_NAME: 'Nightshift',
    GIT_COMMITTER_EMAIL: author,
  }
}

/** Settings of a repository that only describe it. Whatever else stands there could start a program or lead elsewhere. */
const harmless =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|safecrlf|eol|symlinks|sharedrepository|abbrev|quotepath|compression)|user\.(?:name|email)|remote\.[^\n]*\.(?:url|pushurl|fetch|tagopt|prune)|branch\.[^\n]*\.(?:remote|merge|rebase|description)|extensions\.objectformat|init\.defaultbranch|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.(?:ff|conflictstyle)|diff\.(?:renames|algorithm)|receive\.denynonfastforwards|receive\.denydeletes|gc\.(?:auto|pruneexpire|reflogexpire)|submodule\.(?:active|[^\n]*\.(?:url|active))|color\.[^\n]*|advice\.[a-z]+|i18n\.[a-z]+)$/i

/** What a repository says of itself: `[key, value]` in the order it stands there, keys as git writes them. */
export type Settings = readonly (readonly [string, string])[]

/**
 * A checkout as it must be: a directory with a real `.git` in it, of the agent's own user, with no settings but harmless ones and
 * no objects elsewhere. Answers its settings; throws why not.
 */
export async function checkoutAt(place: Place, context: CapabilityContext): Promise<Settings> {
  return at(place, async (directory) => {
    assertDirectory(directory)
    assertOwn(directory)
    const inside = await entry(directory, '.git')
    if (!inside) throw new Refused('not_found', `${place.path} is not a git checkout`)
    try {
      assertDirectory(inside)
      return await assertPlain(inside, place.path, context)
    } finally {
      await inside.handle.close()
    }
  })
}

/** The same for a bare repository that something is pushed to or cloned from. */
export async function bareAt(place: Place, context: CapabilityContext): Promise<void> {
  await at(place, async (directory) => {
    assertDirectory(directory)
    const inside = await entry(directory, '.git')
    await inside?.handle.close()
    if (inside)
      throw new Refused('invalid_arguments', `${place.path} is a checkout: only a bare repository is spoken to`)
    await assertPlain(directory, place.path, context)
  })
}

/** Others could change its settings under our hands, and could not use what we leave in it. */
export function assertOwn({ stat, path }: Held): void {
  const own = process.getuid!()
  if (stat.uid !== BigInt(own))
    throw new Refused('failed', `${path} belongs to user ${stat.uid}, and the agent is ${own}: git would lock them out`)
  if ((stat.mode & 0o002n) !== 0n) throw new Refused('failed', `everybody may write to ${path}`)
}

async function assertPlain(directory: Held, path: string, context: CapabilityContext): Promise<Settings> {
  assertOwn(directory)
  await assertNone(directory, ['commondir'], `${path} shares its repository with another one`)
  await assertNone(directory, ['objects', 'info', 'alternates'], `${path} has objects elsewhere`)
  const settings = await settingsOf(directory, path, context)
  const odd = settings.find(([key]) => !harmless.test(key))
  if (odd)
    throw new Refused('blocked', `the repository's own setting ${odd[0]} could start a program or lead elsewhere`)
  return settings
}

async function assertNone(directory: Held, names: readonly string[], why: string): Promise<void> {
  let held: Held | null = directory
  const opened: Held[] = []
  try {
    for (const name of names) {
      held = await entry(held, name)
      if (!held) return
      opened.push(held)
    }
    throw new Refused('blocked', why)
  } finally {
    for (const { handle } of opened) await handle.close()
  }
}

/** Read as text that we opened ourselves, and handed to git on its input: includes are not followed. */
async function settingsOf(directory: Held, path: string, context: CapabilityContext): Promise<Settings> {
  const file = await open(within(directory.handle, 'config'), constants.O_RDONLY | constants.O_NOFOLLOW)
  let text: string
  try {
    text = await file.readFile('utf8')
  } finally {
    await file.close()
  }
  const ran = await context.run(git('config', '--file', '-', '--no-includes', '--list', '-z'), {
    env: gitEnvironment(authorOf(context)),
    input: text,
    confine: 'read',
  })
  if (ran.exitCode !== 0) throw new Refused('failed', `git cannot read the settings of ${path}`)
  return ran.stdout
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => {
      const end = line.indexOf('\n')
      return end < 0 ? [line, 'true'] : [line.slice(0, end), line.slice(end + 1)]
    })
}

export const authorOf = ({ manifest }: Pick<CapabilityContext, 'manifest'>) => `nightshift@${manifest.device}`

/** Runs git in a checkout as the agent's own user, to whom it belongs: somebody confined might not even read it. */
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
