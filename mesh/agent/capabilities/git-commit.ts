import { copyFile, lstat, mkdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { gitCommitArgs } from '../../specs/git.ts'
import { type CapabilityContext, type DeviceCapability, failed, type Outcome } from '../capability.ts'
import { CapabilityError, inTurn, toOutcome } from '../outcome.ts'
import { whyNotDone } from '../programs.ts'
import { type Copy, inThrowAway, runChecks, withheld } from '../rehearsal.ts'
import { changed, checkoutAt, inCheckout, missingGit } from '../repository.ts'
import { isSecret, type Place, requirePlace, weighWrite } from '../roots.ts'
import { at, entry } from '../walk.ts'

type CommitArgs = z.infer<typeof gitCommitArgs>

/**
 * Commits in a checkout, as Nightshift: `{ path, commit, branch, previous, files }`. The rehearsal
 * makes the same commit with its own index and objects, lays its files out beside, and answers
 * `{ diff, checks, would_change }`.
 */
export const gitCommit: DeviceCapability<CommitArgs> = {
  capability: 'git.commit',
  args: gitCommitArgs,
  missingPrerequisite: missingGit,
  weigh: ({ path, files }, manifest) => {
    const weight = weighWrite(path, manifest)
    if (weight.effect === 'refused') return weight
    return { ...weight, reason: `commits ${files ? files.join(', ') : 'what has changed'} in ${path}` }
  },
  run: (args, context) => ready(args, context, (checkout) => commit(args, checkout, context)),
  rehearse: (args, context) =>
    ready(args, context, (checkout) => rehearseCommit({ ...checkout, named: args.files }, context)),
}

type Checkout = { path: string; head: string; branch: string }

function ready(
  args: CommitArgs,
  context: CapabilityContext,
  act: (checkout: Checkout) => Promise<Outcome>,
): Promise<Outcome> {
  return toOutcome(context.signal, async () => {
    const place = requirePlace(args.path, context.manifest, context, 'change')
    return inTurn(place.path, async () => {
      await checkoutAt(place, context)
      await assertIdle(place)
      const branch = await inCheckout(place.path, ['symbolic-ref', '--short', 'HEAD'], context)
      if (branch.exitCode !== 0)
        throw new CapabilityError('failed', `${place.path} is on no branch: a commit would get lost`)
      const head = await inCheckout(place.path, ['rev-parse', '--verify', 'HEAD^{commit}'], context)
      if (head.exitCode !== 0) throw new CapabilityError('failed', `${place.path} has no commit yet`)
      return act({ path: place.path, head: head.stdout.trim(), branch: branch.stdout.trim() })
    })
  })
}

/** In the middle of a merge or the like, a commit would end another person's work. */
async function assertIdle(place: Place): Promise<void> {
  const directory = { ...place, path: `${place.path}/.git`, segments: [...place.segments, '.git'] }
  await at(directory, async (held) => {
    for (const name of [
      'MERGE_HEAD',
      'CHERRY_PICK_HEAD',
      'REVERT_HEAD',
      'rebase-merge',
      'rebase-apply',
      'index.lock',
    ]) {
      const found = await entry(held, name)
      await found?.handle.close()
      if (found) throw new CapabilityError('conflict', `somebody is at work in ${place.path}: there is .git/${name}`)
    }
  })
}

const messageOf = ({ message, incident }: CommitArgs) =>
  `${message.trimEnd()}\n${incident === undefined ? '' : `\nIncident: ${incident}\n`}`

async function commit(
  args: CommitArgs,
  { path, head, branch }: Checkout,
  context: CapabilityContext,
): Promise<Outcome> {
  if (args.files) {
    const added = await inCheckout(path, ['add', '--all', '--', ...args.files], context)
    const why = whyNotDone('git add', added)
    if (why) return why
  }
  const what = args.files ? ['--only', '--', ...args.files] : ['--all']
  const words = ['commit', '--quiet', '--no-verify', '--no-gpg-sign', '--cleanup=whitespace', '--file=-', ...what]
  const ran = await inCheckout(path, words, context, { input: messageOf(args) })
  if (ran.exitCode === 1 && /nothing (?:added )?to commit|no changes added/.test(ran.stdout))
    return failed('failed', 'nothing to commit')
  const why = whyNotDone('git commit', ran)
  if (why) return why
  const made = await inCheckout(path, ['rev-parse', 'HEAD'], context)
  const files = await changed(path, head, made.stdout.trim(), context)
  const result = { path, commit: made.stdout.trim(), branch, previous: head, files }
  return { ok: true, result, truncated: false }
}

/** An approval card lists no more files than these. */
const shownFiles = 200
/** A check may need what lies beside a file; a tree of more than this is not copied for it. */
const laidBytes = 64 * 1024 * 1024

type Env = Record<string, string>
type Trees = { path: string; head: string; tree: string }

/**
 * Makes the commit that `git.commit` would make, with its own index and objects, and lays its files
 * out for the checks: `{ diff, checks, would_change, path, files }`. Nothing of the checkout is
 * written.
 */
export function rehearseCommit(
  { path, head, named }: { path: string; head: string; named: readonly string[] | undefined },
  context: CapabilityContext,
): Promise<Outcome> {
  return inThrowAway(context.state, async (directory) => {
    const env = {
      GIT_INDEX_FILE: join(directory, 'index'),
      GIT_OBJECT_DIRECTORY: join(directory, 'objects'),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(path, '.git', 'objects'),
    }
    await mkdir(env.GIT_OBJECT_DIRECTORY)
    const ours = async (...words: string[]): Promise<string> => {
      const ran = await inCheckout(path, words, context, { env })
      const why = whyNotDone(`git ${words[0]}`, ran)
      if (why && !why.ok) throw new CapabilityError(why.code, why.message)
      return ran.stdout
    }
    // As the commit will: named files on top of the last commit, or what has changed on top of what
    // is staged.
    if (named) {
      await ours('read-tree', head)
      await ours('add', '--all', '--', ...named)
    } else {
      await copyIndex(join(path, '.git', 'index'), env.GIT_INDEX_FILE)
      await ours('add', '--update', '--', '.')
    }
    const trees = { path, head, tree: (await ours('write-tree')).trim() }
    const files = await changed(path, head, trees.tree, context, { env })
    const { diff, truncated } = await diffOf(trees, files, context, env)

    const laid = join(directory, 'tree')
    await mkdir(laid)
    if (files.length > 0 && context.manifest.checks.length > 0) {
      const what = await whatToLay(trees, context, env)
      if (what.length > 0) await ours('checkout-index', `--prefix=${laid}/`, ...what)
    }
    const copies = await Promise.all(files.map((name) => copyOf(path, laid, name)))
    const checks = await runChecks(
      copies.flatMap((copy) => copy ?? []),
      laid,
      context,
    )
    const result = { diff, checks, would_change: files.length > 0, path, files }
    return { ok: true, result, truncated }
  })
}

/**
 * With its time: to git a file that is younger than the index may have changed, though its size and
 * time say nothing of it.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from)
  await copyFile(from, to)
  await utimes(to, new Date(), new Date(Math.floor(mtimeMs)))
}

async function diffOf({ path, head, tree }: Trees, files: readonly string[], context: CapabilityContext, env: Env) {
  const secret = files.filter((name) => isSecret(join(path, name)))
  const open = files.filter((name) => !secret.includes(name))
  const notes = secret.map((name) => `${name}: ${withheld}`)
  if (open.length > shownFiles) notes.push(`${open.length - shownFiles} files more are changed\n`)
  const truncated = open.length > shownFiles
  if (open.length === 0) return { diff: notes.join(''), truncated }
  const words = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', head, tree, '--']
  const shown = await inCheckout(path, [...words, ...open.slice(0, shownFiles)], context, { env })
  return { diff: shown.stdout + notes.join(''), truncated: truncated || shown.truncated }
}

/** All files where they are few and small, else those that the commit changes and leaves there. */
async function whatToLay({ path, head, tree }: Trees, context: CapabilityContext, env: Env): Promise<string[]> {
  const { stdout, exitCode } = await inCheckout(path, ['ls-tree', '-r', '-l', tree], context, { env })
  // "100644 blob <id> <size>\t<name>"
  const sizes = stdout.split('\n').map((line) => Number(/^\d+ blob \w+ +(\d+)\t/.exec(line)?.[1] ?? 0))
  if (exitCode === 0 && sizes.reduce((sum, size) => sum + size, 0) <= laidBytes) return ['--all']
  const left = await changed(path, head, tree, context, { env, removed: false })
  return left.length === 0 ? [] : ['--', ...left.slice(0, shownFiles)]
}

/**
 * Its copy, where the commit leaves a regular file: what it removes cannot be checked, and a link
 * would lead out of the copy.
 */
async function copyOf(path: string, laid: string, name: string): Promise<Copy | null> {
  const copy = join(laid, name)
  const found = await lstat(copy).catch(() => null)
  return found?.isFile() ? { path: join(path, name), copy } : null
}
