import { copyFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { gitCommitArgs } from '../../specs/git.ts'
import { gitLogArgs, gitShowArgs } from '../../specs/git-history.ts'
import { type CapabilityContext, type DeviceCapability, failed, type Outcome } from '../capability.ts'
import {
  type Checkout,
  commitAt,
  commitFormat,
  commitsIn,
  diffOf,
  emptyTree,
  inIdleCheckout,
  shownFiles,
  uncommitted,
} from '../checkout.ts'
import { environmentIn, output, reportTree } from '../container-rehearsal.ts'
import { isSecret, requirePlace, weighRead, weighWrite } from '../manifest.ts'
import { CapabilityError, toOutcome } from '../operation.ts'
import { whyNotDone } from '../programs.ts'
import { inThrowAway, withheld } from '../rehearsal.ts'
import { changed, checkoutAt, inCheckout, missingGit, missingGitToRead } from '../repository.ts'

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
  run: (args, context) => inIdleCheckout(args.path, context, (checkout) => commit(args, checkout, context)),
  rehearse: (args, context) =>
    inIdleCheckout(args.path, context, (checkout) => rehearseCommit({ ...checkout, named: args.files }, context)),
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
    const env = await environmentIn(directory, path)
    const ours = (...words: string[]) => output(path, words, context, env)
    // As the commit will: named files on top of the last commit, or what has changed on top of what
    // is staged.
    if (named) {
      await ours('read-tree', head)
      await ours('add', '--all', '--', ...named)
    } else {
      await copyIndex(join(path, '.git', 'index'), join(directory, 'index'))
      await ours('add', '--update', '--', '.')
    }
    const trees = { path, head, tree: (await ours('write-tree')).trim() }
    return reportTree(trees, { directory, env }, context)
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

/** What a model reads at once of a difference or a file. */
const longestText = 60_000

const part = (text: string) => (text.length > longestText ? text.slice(0, longestText).toWellFormed() : text)

/** The newest first: `{ path, branch, commits: [{ commit, parents, at, author, subject }], uncommitted, uncommitted_total }`. */
const gitLog: DeviceCapability<z.infer<typeof gitLogArgs>> = {
  capability: 'git.log',
  args: gitLogArgs,
  missingPrerequisite: missingGitToRead,
  weigh: ({ path }, manifest) => weighRead(path, manifest),
  run: ({ path, limit }, context) =>
    toOutcome(context.signal, async () => {
      const place = await readable(path, context)
      const branch = await inCheckout(place, ['symbolic-ref', '--quiet', '--short', 'HEAD'], context)
      const words = ['log', `-${limit + 1}`, commitFormat, '--no-show-signature', '--no-decorate', 'HEAD', '--']
      const ran = await inCheckout(place, words, context)
      const why = whyNotDone('git log', ran)
      if (why) return why
      const commits = commitsIn(ran.stdout)
      const result = {
        path: place,
        branch: branch.exitCode === 0 ? branch.stdout.trim() : null,
        commits: commits.slice(0, limit),
        ...(await unfinished(place, context)),
      }
      return { ok: true, result, truncated: commits.length > limit }
    }),
}

/**
 * A commit: `{ path, commit, …, message, files, diff }`, against its first parent; with `file` that one alone, and its `content`. What is held
 * for secret is named and not shown.
 */
const gitShow: DeviceCapability<z.infer<typeof gitShowArgs>> = {
  capability: 'git.show',
  args: gitShowArgs,
  missingPrerequisite: missingGitToRead,
  weigh: ({ path }, manifest) => weighRead(path, manifest),
  run: ({ path, revision, file }, context) =>
    toOutcome(context.signal, async () => {
      const place = await readable(path, context)
      const commit = await commitAt(place, revision, context)
      const tree = commit.commit
      const head = commit.parents[0] ?? (await emptyTree(place, context))
      const all = await changed(place, head, tree, context)
      const files = file === undefined ? all : all.filter((name) => name === file)
      const { diff, truncated } = await diffOf({ path: place, head, tree }, files, context)
      const content = file === undefined ? null : await contentOf(place, tree, file, context)
      const message = await inCheckout(place, ['log', '-1', '--format=%B', '--no-show-signature', tree, '--'], context)
      const isCut = diff.length > longestText || (content?.length ?? 0) > longestText
      const result = {
        path: place,
        ...commit,
        message: message.stdout.trim().slice(0, 5_000),
        files: files.slice(0, shownFiles),
        files_total: files.length,
        diff: part(diff),
        ...(content !== null && { file, content: part(content) }),
        ...(await unfinished(place, context)),
      }
      return { ok: true, result, truncated: truncated || isCut || files.length > shownFiles }
    }),
}

/** A checkout by the rules of every git capability: its settings and its owner decide whether git opens it. */
async function readable(path: string, context: CapabilityContext): Promise<string> {
  const place = requirePlace(path, context.manifest, context, 'look')
  await checkoutAt(place, context)
  return place.path
}

/** Changes that no commit has yet: somebody may be at work, or a file was changed by hand. */
async function unfinished(path: string, context: CapabilityContext) {
  const files = await uncommitted(path, context)
  return { uncommitted: files.slice(0, shownFiles), uncommitted_total: files.length }
}

async function contentOf(path: string, commit: string, file: string, context: CapabilityContext): Promise<string> {
  if (isSecret(join(path, file))) return withheld
  requirePlace(join(path, file), context.manifest, context, 'look')
  const ran = await inCheckout(path, ['cat-file', 'blob', `${commit}:${file}`], context)
  if (ran.exitCode !== 0 && ran.stoppedBy !== 'output')
    throw new CapabilityError('not_found', `${commit.slice(0, 12)} of ${path} has no file ${file}`)
  return ran.stdout
}

export const gitHistory = [gitLog, gitShow]
