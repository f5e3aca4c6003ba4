import { join } from 'node:path'
import type { z } from 'zod'
import { gitLogArgs, gitShowArgs } from '../../specs/git-history.ts'
import type { CapabilityContext, DeviceCapability } from '../capability.ts'
import { commitAt, commitFormat, commitsIn, diffOf, emptyTree, shownFiles, uncommitted } from '../checkout.ts'
import { CapabilityError, toOutcome } from '../outcome.ts'
import { whyNotDone } from '../programs.ts'
import { withheld } from '../rehearsal.ts'
import { changed, checkoutAt, inCheckout, missingGitToRead } from '../repository.ts'
import { isSecret, requirePlace, weighRead } from '../roots.ts'

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
