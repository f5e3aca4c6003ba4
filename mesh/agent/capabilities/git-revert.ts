import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { gitRevertArgs } from '../../specs/git-history.ts'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { assertWritable, type Checkout, type Commit, commitAt, inIdleCheckout, uncommitted } from '../checkout.ts'
import { environmentIn, output, reportTree } from '../container-rehearsal.ts'
import { weighWrite } from '../manifest.ts'
import { CapabilityError } from '../operation.ts'
import { whyNotDone } from '../programs.ts'
import { inThrowAway } from '../rehearsal.ts'
import { changed, inCheckout, missingGit, namesIn } from '../repository.ts'

type Args = z.infer<typeof gitRevertArgs>

/**
 * Takes one commit back by a new one, as Nightshift: `{ path, commit, branch, previous, reverted, files }`. The tree is made beside the
 * checkout, where a conflict leaves nothing behind; the checkout then goes to it in one step of git, or not at all. The rehearsal stops before
 * that step.
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
        // Its objects go to the repository: one that is not used is collected by git some day.
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
        return reportTree({ ...checkout, tree }, { directory, env }, context)
      }),
    ),
}

/** The commit, if it is part of the branch and has one parent. */
async function revertible({ revision }: Args, { path, head, branch }: Checkout, context: CapabilityContext) {
  const commit = await commitAt(path, revision, context)
  const short = commit.commit.slice(0, 12)
  const isPart = await inCheckout(path, ['merge-base', '--is-ancestor', commit.commit, head], context)
  if (isPart.exitCode !== 0) throw new CapabilityError('conflict', `${short} is not on ${branch} of ${path}`)
  if (commit.parents.length > 1)
    throw new CapabilityError('conflict', `${short} is a merge: revert the commits that it brought, one by one`)
  if (commit.parents.length === 0)
    throw new CapabilityError('conflict', `${short} is the first commit: nothing would be left`)
  return commit
}

type Beside = { directory: string; env: Record<string, string> }

/** The tree of HEAD without what the commit changed. Throws where later commits changed the same lines. */
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
    throw new CapabilityError('conflict', `nothing is left of ${commit.slice(0, 12)}: it was taken back before`)
  assertWritable(path, files, context)
  const words = ['diff-tree', '-r', '--name-only', '--no-renames', '--diff-filter=A', head, tree]
  const inTheWay = namesIn(await output(path, words, context, env)).find((name) => existsSync(join(path, name)))
  if (inTheWay !== undefined)
    throw new CapabilityError('conflict', `${inTheWay} would come back, and ${path} has another file there`)
  const busy = (await uncommitted(path, context)).filter((name) => files.includes(name))
  if (busy.length > 0)
    throw new CapabilityError('conflict', `${busy.slice(0, 10).join(', ')} in ${path} has changes that no commit has`)
  return tree
}

async function goTo(
  tree: string,
  { commit, subject }: Commit,
  { path, head, branch }: Checkout,
  context: CapabilityContext,
): Promise<Outcome> {
  const input = `Revert "${subject}"\n\nThis reverts commit ${commit}.\n`
  const made = await inCheckout(path, ['commit-tree', tree, '-p', head, '--no-gpg-sign', '-F', '-'], context, { input })
  const whyUnmade = whyNotDone('git commit-tree', made)
  if (whyUnmade) return whyUnmade
  const next = made.stdout.trim()
  // It refuses as a whole where a file is in the way, and where the branch has moved.
  const words = ['merge', '--ff-only', '--quiet', '--no-stat', '--no-verify-signatures', next]
  const why = whyNotDone('git merge --ff-only', await inCheckout(path, words, context))
  if (why) return why
  const files = await changed(path, head, next, context)
  return { ok: true, result: { path, commit: next, branch, previous: head, reverted: commit, files }, truncated: false }
}
