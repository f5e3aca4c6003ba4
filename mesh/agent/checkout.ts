import { join } from 'node:path'
import type { Manifest } from '../../domain/mesh.ts'
import { type CapabilityContext, CapabilityError, type CapabilityOutcome, runInTurn, toOutcome } from './capability.ts'
import { isSecret, type ManifestPath, type PathRejection, parsePlace, requirePlace, weighWrite } from './manifest.ts'
import { withheld } from './rehearsal.ts'
import { checkoutAt, inCheckout, namesIn } from './repository.ts'
import { openEntry, withEntryAt } from './walk.ts'

/** A checkout without unfinished work, with its branch and its commit. */
export type Checkout = { path: string; head: string; branch: string }

/**
 * Runs `act` in a checkout, one call at a time. Throws if the branch has no commit, a new commit
 * would get lost, or another person's work is unfinished.
 */
export function inIdleCheckout(
  path: string,
  context: CapabilityContext,
  act: (checkout: Checkout) => Promise<CapabilityOutcome>,
): Promise<CapabilityOutcome> {
  return toOutcome(context.signal, async () => {
    const place = requirePlace(path, context.manifest, context, 'change')
    return runInTurn(place.path, async () => {
      await checkoutAt(place, context)
      await assertIdle(place)
      const branch = await inCheckout(place.path, ['symbolic-ref', '--short', 'HEAD'], context)
      if (branch.exitCode !== 0)
        throw new CapabilityError('failed', `${place.path} is not on a branch, so a commit would get lost`)
      const head = await inCheckout(place.path, ['rev-parse', '--verify', 'HEAD^{commit}'], context)
      if (head.exitCode !== 0) throw new CapabilityError('failed', `${place.path} has no commit yet`)
      return act({ path: place.path, head: head.stdout.trim(), branch: branch.stdout.trim() })
    })
  })
}

/**
 * Throws during a merge or a similar operation, in which a commit would complete another person's
 * work.
 */
async function assertIdle(place: ManifestPath): Promise<void> {
  const directory = { ...place, path: `${place.path}/.git`, segments: [...place.segments, '.git'] }
  await withEntryAt(directory, async (held) => {
    for (const name of [
      'MERGE_HEAD',
      'CHERRY_PICK_HEAD',
      'REVERT_HEAD',
      'rebase-merge',
      'rebase-apply',
      'index.lock',
    ]) {
      const found = await openEntry(held, name)
      await found?.handle.close()
      if (found) throw new CapabilityError('conflict', `work in ${place.path} is not finished: .git/${name} exists`)
    }
  })
}

/** Checks by the rules of `fs.write` the files that git will write in the working tree. */
export function assertWritable(path: string, files: readonly string[], context: CapabilityContext): void {
  for (const name of files) {
    const file = join(path, name)
    requirePlace(file, context.manifest, context, 'change')
    const { effect, reason } = weighWrite(file, context.manifest)
    if (effect === 'refused') throw new CapabilityError('blocked', reason)
  }
}

export type Commit = { commit: string; parents: string[]; at: string; author: string; subject: string }

/** The format of a commit in `git log`: one line per field. No field contains a line break. */
export const commitFormat = '--format=%H%n%P%n%cI%n%an%n%s'

export function commitsIn(listing: string): Commit[] {
  const lines = listing.split('\n')
  const found: Commit[] = []
  for (let index = 0; index + 4 < lines.length; index += 5) {
    const [commit = '', parents = '', at = '', author = '', subject = ''] = lines.slice(index, index + 5)
    found.push({ commit, parents: parents.split(' ').filter(Boolean), at, author, subject: subject.slice(0, 200) })
  }
  return found
}

/** Returns the commit of a revision. Throws if there is no such commit. */
export async function commitAt(path: string, revision: string, context: CapabilityContext): Promise<Commit> {
  const named = await inCheckout(path, ['rev-parse', '--verify', '--quiet', `${revision}^{commit}`], context)
  if (named.exitCode !== 0)
    throw new CapabilityError('not_found', `${path} has no commit ${revision}: git_log lists its commits`)
  const words = ['log', '-1', commitFormat, '--no-show-signature', '--no-decorate', named.stdout.trim(), '--']
  const [found] = commitsIn((await inCheckout(path, words, context)).stdout)
  if (!found) throw new CapabilityError('failed', `git cannot read the commit ${revision} of ${path}`)
  return found
}

const submodulesAlone = ['-c', 'diff.ignoreSubmodules=all']

/** Lists tracked files that differ from the last commit, in the index or in the working tree. */
export async function uncommittedFiles(path: string, context: CapabilityContext): Promise<string[]> {
  // Lists no file that was only touched, because `git status` then compares the content.
  const words = [...submodulesAlone, 'status', '--porcelain=v1', '--untracked-files=no', '--no-renames']
  const { stdout, exitCode } = await inCheckout(path, words, context)
  if (exitCode !== 0) throw new CapabilityError('failed', `git cannot report what has changed in ${path}`)
  // The format of a line: "XY name"
  return namesIn(
    stdout
      .split('\n')
      .map((line) => line.slice(3))
      .join('\n'),
  )
}

/** The most files that a card lists. */
export const shownFiles = 200

type Env = Record<string, string>
export type Trees = { path: string; head: string; tree: string }

/** Returns the difference between two trees in these files. Leaves out secret files. */
export async function diffOf(
  { path, head, tree }: Trees,
  files: readonly string[],
  context: CapabilityContext,
  env: Env = {},
): Promise<{ diff: string; truncated: boolean }> {
  const secret = files.filter((name) => isSecret(join(path, name)))
  const open = files.filter((name) => !secret.includes(name))
  const notes = secret.map((name) => `${name}: ${withheld}`)
  if (open.length > shownFiles) notes.push(`${open.length - shownFiles} more files are changed\n`)
  const truncated = open.length > shownFiles
  if (open.length === 0) return { diff: notes.join(''), truncated }
  const words = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', head, tree, '--']
  const shown = await inCheckout(path, [...words, ...open.slice(0, shownFiles)], context, { env })
  return { diff: shown.stdout + notes.join(''), truncated: truncated || shown.truncated }
}

/**
 * Returns the id of the empty tree, for the first commit. The id depends on the repository's hash
 * algorithm.
 */
export async function emptyTree(path: string, context: CapabilityContext): Promise<string> {
  const { stdout, exitCode } = await inCheckout(path, ['hash-object', '-t', 'tree', '--stdin'], context)
  if (exitCode !== 0) throw new CapabilityError('failed', `git cannot compare anything in ${path}`)
  return stdout.trim()
}

/**
 * The place of a repository: a host that the manifest lists, or a path inside the roots. `shown`
 * never contains a password.
 */
export type Remote = { kind: 'host' | 'path'; url: string; shown: string }

const host = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/
const scp = /^([A-Za-z_][A-Za-z0-9_.-]*)@([^:/@]+):([^-:][^\0\n]*)$/

/**
 * Reads the address of a repository, or returns why it is refused. Accepts paths, https and ssh;
 * never another transport or a helper program.
 */
export function remoteOf(text: string, manifest: Manifest): Remote | PathRejection {
  if (text.startsWith('/')) {
    const place = parsePlace(text, manifest)
    return 'code' in place ? place : { kind: 'path', url: place.path, shown: place.path }
  }
  const named = scp.exec(text)
  // `user@host:path` is the usual form for ssh, and means ssh://user@host/path.
  const [name, written] = named ? [named[2]!, text] : hostOf(text)
  if (name === null) return { code: 'blocked', message: written }
  if (!host.test(name.split(':')[0]!)) return { code: 'blocked', message: `${name} is not a host` }
  if (!manifest.git_hosts.some((listed) => listed.toLowerCase() === name.toLowerCase()))
    return {
      code: 'blocked',
      message: `${name} is not one of the git hosts that this device may use${listOf(manifest)}`,
    }
  return { kind: 'host', url: text, shown: named ? text : withoutPassword(text) }
}

const listOf = ({ git_hosts }: Manifest) => (git_hosts.length === 0 ? ', which has none' : `: ${git_hosts.join(', ')}`)

/** Returns the host, with its port if given, and the address; or null and the error. */
function hostOf(text: string): [string, string] | [null, string] {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return [null, 'this is not the address of a repository']
  }
  if (url.protocol !== 'https:' && url.protocol !== 'ssh:')
    return [null, `${url.protocol} is not supported: use https or ssh`]
  // Checks the text itself, because the URL parser drops or rewrites characters that git would see.
  if (/[\s\\\0#?]/.test(text)) return [null, 'the address holds white space, a backslash, # or ?']
  if (!/^(?:[A-Za-z_][A-Za-z0-9_.-]*)?$/.test(url.username)) return [null, 'the address has no plain user name']
  return [url.host, text]
}

function withoutPassword(text: string): string {
  const url = new URL(text)
  url.username = url.protocol === 'ssh:' ? url.username : ''
  url.password = ''
  return url.href
}
