import { existsSync } from 'node:fs'
import { copyFile, mkdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { gitCommitArgs, gitLogArgs, gitRevertArgs, gitShowArgs } from '../../specs/git.ts'
import {
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  failedOutcome,
  toOutcome,
} from '../capability.ts'
import {
  assertWritable,
  type Checkout,
  type Commit,
  commitAt,
  commitFormat,
  commitsIn,
  diffOf,
  emptyTree,
  inIdleCheckout,
  shownFiles,
  uncommittedFiles,
} from '../checkout.ts'
import { environmentIn, output, reportTree } from '../container-rehearsal.ts'
import { isSecret, requirePlace, weighRead, weighWrite } from '../manifest.ts'
import { whyNotDone } from '../programs.ts'
import { inThrowAway, withheld } from '../rehearsal.ts'
import { named } from '../rehearsal-report.ts'
import { changed, checkoutAt, inCheckout, missingGit, missingGitToRead, namesIn } from '../repository.ts'

type CommitArgs = z.infer<typeof gitCommitArgs>

/**
 * Commits in a checkout as the author Nightshift: `{ path, commit, branch, previous, files }`. The
 * dry run makes this commit with a separate index and object store, writes its files to a copy, and
 * returns `{ diff, checks, would_change }`.
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
): Promise<CapabilityOutcome> {
  if (args.files) {
    const added = await inCheckout(path, ['add', '--all', '--', ...args.files], context)
    const why = whyNotDone('git add', added)
    if (why) return why
  }
  const what = args.files ? ['--only', '--', ...args.files] : ['--all']
  const words = ['commit', '--quiet', '--no-verify', '--no-gpg-sign', '--cleanup=whitespace', '--file=-', ...what]
  const ran = await inCheckout(path, words, context, { input: messageOf(args) })
  if (ran.exitCode === 1 && /nothing (?:added )?to commit|no changes added/.test(ran.stdout))
    return failedOutcome('failed', 'nothing to commit')
  const why = whyNotDone('git commit', ran)
  if (why) return why
  const made = await inCheckout(path, ['rev-parse', 'HEAD'], context)
  const files = await changed(path, head, made.stdout.trim(), context)
  const result = { path, commit: made.stdout.trim(), branch, previous: head, files }
  return { ok: true, result, truncated: false }
}

/**
 * Makes the commit that `git.commit` would make, with a separate index and object store, and writes
 * its files to a copy for the checks: `{ diff, checks, would_change, path, files }`. Leaves the
 * checkout unchanged.
 */
function rehearseCommit(
  { path, head, named }: { path: string; head: string; named: readonly string[] | undefined },
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  return inThrowAway(context.state, async (directory) => {
    const env = await environmentIn(directory, path)
    const ours = (...words: string[]) => output(path, words, context, env)
    // Builds the tree of the commit: the named files on top of the last commit, or all changes of
    // tracked files on top of the staged changes.
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
 * Copies the index with its modification time, because git reads again every file that is younger
 * than the index.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from)
  await copyFile(from, to)
  await utimes(to, new Date(), new Date(Math.floor(mtimeMs)))
}

/** The most characters of a diff or a file that a model gets. */
const maxTextCharacters = 60_000

const part = (text: string) =>
  text.length > maxTextCharacters ? text.slice(0, maxTextCharacters).toWellFormed() : text

/**
 * Lists the newest commits: `{ path, branch, commits: [{ commit, parents, at, author, subject }],
 * uncommitted, uncommitted_total }`.
 */
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
 * Shows a commit: `{ path, commit, …, message, files, diff }`, compared with its first parent; with
 * `file` only this file, and its `content`. Lists secret files by name without showing them.
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
      const isCut = diff.length > maxTextCharacters || (content?.length ?? 0) > maxTextCharacters
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

/** Opens a checkout by the rules of every git capability, which check its settings and owner. */
async function readable(path: string, context: CapabilityContext): Promise<string> {
  const place = requirePlace(path, context.manifest, context, 'look')
  await checkoutAt(place, context)
  return place.path
}

/** Lists uncommitted files: a person may be working there, or changed a file by hand. */
async function unfinished(path: string, context: CapabilityContext) {
  const files = await uncommittedFiles(path, context)
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

type Args = z.infer<typeof gitRevertArgs>

/**
 * Reverts one commit with a new commit, as the author Nightshift: `{ path, commit, branch,
 * previous, reverted, files }`. Builds the new tree beside the checkout, so that a conflict leaves
 * nothing behind. git then moves the checkout to the new commit in one step, or not at all. The dry
 * run stops before this step.
 */
export const gitRevert: DeviceCapability<Args> = {
  capability: 'git.revert',
  args: gitRevertArgs,
  missingPrerequisite: missingGit,
  weigh: ({ path, revision }, manifest) => {
    const weight = weighWrite(path, manifest)
    return weight.effect === 'refused' ? weight : { ...weight, reason: `reverts ${revision} in ${path}` }
  },
  run: (args, context) =>
    inIdleCheckout(args.path, context, (checkout) =>
      inThrowAway(context.state, async (directory) => {
        const commit = await revertible(args, checkout, context)
        // Writes objects to the repository, from which git later removes unused objects.
        const env = { GIT_INDEX_FILE: join(directory, 'index') }
        const tree = await revertedTree(checkout, commit, { directory, env }, context)
        return goTo(tree, commit, checkout, context)
      }),
    ),
  rehearse: (args, context) =>
    inIdleCheckout(args.path, context, (checkout) =>
      inThrowAway(context.state, async (directory) => {
        const commit = await revertible(args, checkout, context)
        const env = await environmentIn(directory, checkout.path)
        const tree = await revertedTree(checkout, commit, { directory, env }, context)
        const about = `commit ${commit.commit.slice(0, 12)} "${commit.subject}"`
        return named(await reportTree({ ...checkout, tree }, { directory, env }, context), about)
      }),
    ),
}

/** Returns the commit if it is part of the branch and has one parent. Throws otherwise. */
async function revertible(
  { revision, if_head: wanted }: Args,
  { path, head, branch }: Checkout,
  context: CapabilityContext,
) {
  if (wanted !== undefined && wanted !== head)
    throw new CapabilityError(
      'conflict',
      `HEAD of ${path} is ${head.slice(0, 12)}, but ${wanted.slice(0, 12)} was expected: nothing was done`,
    )
  const commit = await commitAt(path, revision, context)
  const short = commit.commit.slice(0, 12)
  const isPart = await inCheckout(path, ['merge-base', '--is-ancestor', commit.commit, head], context)
  if (isPart.exitCode !== 0) throw new CapabilityError('conflict', `${short} is not on ${branch} of ${path}`)
  if (commit.parents.length > 1)
    throw new CapabilityError('conflict', `${short} is a merge: revert its commits one by one`)
  if (commit.parents.length === 0)
    throw new CapabilityError('conflict', `${short} is the first commit: a revert would leave nothing`)
  return commit
}

type Beside = { directory: string; env: Record<string, string> }

/** Builds HEAD's tree without the commit's changes. Throws if later changes overlap these. */
async function revertedTree(
  { path, head }: Checkout,
  { commit, parents }: Commit,
  { directory, env }: Beside,
  context: CapabilityContext,
): Promise<string> {
  const beside = join(directory, 'merge')
  await mkdir(beside)
  await output(path, ['read-tree', head], context, env)
  const merge = [`--work-tree=${beside}`, 'merge-recursive', commit, '--', head, parents[0] ?? '']
  const merged = await inCheckout(path, merge, context, { env, cwd: beside })
  if (merged.exitCode === 1) {
    const unmerged = await output(
      path,
      ['diff-index', '--cached', '--name-only', '--diff-filter=U', head],
      context,
      env,
    )
    const names = unmerged.split('\n').filter(Boolean).slice(0, 10).join(', ')
    throw new CapabilityError(
      'conflict',
      `later commits changed what ${commit.slice(0, 12)} did: ${names || 'git says'}`,
    )
  }
  const why = whyNotDone('git merge-recursive', merged)
  if (why && !why.ok) throw new CapabilityError(why.code, why.message)
  const tree = (await output(path, ['write-tree'], context, env)).trim()
  const files = await changed(path, head, tree, context, { env })
  if (files.length === 0)
    throw new CapabilityError('conflict', `nothing is left of ${commit.slice(0, 12)}: it was reverted before`)
  assertWritable(path, files, context)
  const words = ['diff-tree', '-r', '--name-only', '--no-renames', '--diff-filter=A', head, tree]
  const inTheWay = namesIn(await output(path, words, context, env)).find((name) => existsSync(join(path, name)))
  if (inTheWay !== undefined)
    throw new CapabilityError('conflict', `${inTheWay} would come back, and ${path} has another file at that path`)
  const busy = (await uncommittedFiles(path, context)).filter((name) => files.includes(name))
  if (busy.length > 0)
    throw new CapabilityError('conflict', `${busy.slice(0, 10).join(', ')} in ${path} has uncommitted changes`)
  return tree
}

async function goTo(
  tree: string,
  { commit, subject }: Commit,
  { path, head, branch }: Checkout,
  context: CapabilityContext,
): Promise<CapabilityOutcome> {
  const input = `Revert "${subject}"\n\nThis reverts commit ${commit}.\n`
  const made = await inCheckout(path, ['commit-tree', tree, '-p', head, '--no-gpg-sign', '-F', '-'], context, { input })
  const whyUnmade = whyNotDone('git commit-tree', made)
  if (whyUnmade) return whyUnmade
  const next = made.stdout.trim()
  // Moves the branch. git refuses this merge if a file is in the way, or if the branch has moved.
  const words = ['merge', '--ff-only', '--quiet', '--no-stat', '--no-verify-signatures', next]
  const why = whyNotDone('git merge --ff-only', await inCheckout(path, words, context))
  if (why) return why
  const files = await changed(path, head, next, context)
  return { ok: true, result: { path, commit: next, branch, previous: head, reverted: commit, files }, truncated: false }
}
