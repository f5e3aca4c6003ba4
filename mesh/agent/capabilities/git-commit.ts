import { copyFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { gitCommitArgs } from '../../specs/git.ts'
import { type CapabilityContext, type DeviceCapability, failed, type Outcome } from '../capability.ts'
import { type Checkout, inIdleCheckout } from '../checkout.ts'
import { whyNotDone } from '../programs.ts'
import { inThrowAway } from '../rehearsal.ts'
import { changed, inCheckout, missingGit } from '../repository.ts'
import { weighWrite } from '../roots.ts'
import { environmentIn, output, reportTree } from '../tree-rehearsal.ts'

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
