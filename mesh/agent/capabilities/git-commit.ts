import { z } from 'zod'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { failed } from '../capability.ts'
import { rehearseCommit } from '../commit-rehearsal.ts'
import { whyNotDone } from '../programs.ts'
import { answered, Refused } from '../refused.ts'
import { changed, checkoutAt, inCheckout } from '../repository.ts'
import { type Place, pathArgument, placed, weighChange } from '../roots.ts'
import { inTurn } from '../turns.ts'
import { at, entry } from '../walk.ts'
import { lacksGit } from './git.ts'

/** Inside the checkout, as git writes it; never git's own files. */
const file = z
  .string()
  .min(1)
  .max(4_000)
  .refine((path) => !path.startsWith('-') && !path.startsWith('/') && !path.includes('\0'), 'is no path in a checkout')
  .refine((path) => path.split('/').every((part) => part !== '..' && part.toLowerCase() !== '.git'), 'leads elsewhere')

const args = z.strictObject({
  path: pathArgument,
  message: z
    .string()
    .min(1)
    .max(5_000)
    .refine((text) => text.trim() !== '' && !text.includes('\0'), 'is no message'),
  /** Exactly these, new and removed ones too; without it every tracked file that has changed, and no other. */
  files: z.array(file).min(1).max(200).optional(),
  /** Ends up in the trailer `Incident:`. */
  incident: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}$/)
    .optional(),
})
type Args = z.infer<typeof args>

/**
 * Commits in a checkout, as Nightshift: `{ path, commit, branch, previous, files }`. The rehearsal makes the same commit with an index
 * and objects of its own, lays its files out beside, and answers `{ diff, checks, would_change }`.
 */
export const gitCommit: DeviceCapability<Args> = {
  capability: 'git.commit',
  args,
  lacks: lacksGit,
  weigh: ({ path, files }, manifest) => {
    const weight = weighChange(path, manifest)
    if (weight.effect === 'refused') return weight
    return { ...weight, reason: `commits ${files ? files.join(', ') : 'what has changed'} in ${path}` }
  },
  run: (args, context) => ready(args, context, (checkout) => commit(args, checkout, context)),
  rehearse: (args, context) =>
    ready(args, context, (checkout) => rehearseCommit({ ...checkout, named: args.files }, context)),
}

type Checkout = { path: string; head: string; branch: string }

function ready(
  args: Args,
  context: CapabilityContext,
  act: (checkout: Checkout) => Promise<Outcome>,
): Promise<Outcome> {
  return answered(context.signal, async () => {
    const place = placed(args.path, context.manifest, context, 'change')
    return inTurn(place.path, async () => {
      await checkoutAt(place, context)
      await assertIdle(place)
      const branch = await inCheckout(place.path, ['symbolic-ref', '--short', 'HEAD'], context)
      if (branch.exitCode !== 0) throw new Refused('failed', `${place.path} is on no branch: a commit would get lost`)
      const head = await inCheckout(place.path, ['rev-parse', '--verify', 'HEAD^{commit}'], context)
      if (head.exitCode !== 0) throw new Refused('failed', `${place.path} has no commit yet`)
      return act({ path: place.path, head: head.stdout.trim(), branch: branch.stdout.trim() })
    })
  })
}

/** In the middle of a merge or the like, a commit would end what somebody else began. */
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
      if (found) throw new Refused('conflict', `somebody is at work in ${place.path}: there is .git/${name}`)
    }
  })
}

const messageOf = ({ message, incident }: Args) =>
  `${message.trimEnd()}\n${incident === undefined ? '' : `\nIncident: ${incident}\n`}`

async function commit(args: Args, { path, head, branch }: Checkout, context: CapabilityContext): Promise<Outcome> {
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
