import { z } from 'zod'
import type { CapabilityContext, DeviceCapability, Outcome, RunResult } from '../capability.ts'
import { failed } from '../capability.ts'
import { tail, whyNotDone } from '../programs.ts'
import { answered, Refused } from '../refused.ts'
import { type Remote, remoteOf } from '../remote.ts'
import { askSettings, bareAt, checkoutAt, inCheckout } from '../repository.ts'
import { pathArgument, placed, weighChange } from '../roots.ts'
import { branchName, lacksGit } from './git.ts'

const args = z.strictObject({
  path: pathArgument,
  remote: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'is no name of a remote')
    .default('origin'),
  branch: branchName.optional(),
})

/**
 * Pushes one branch to the branch of the same name, never by force: `{ path, remote, url, branch, commit, before }`. The remote must be
 * on a host of the manifest, or a bare repository in a writable root. One that has moved on is a `conflict`.
 */
export const gitPush: DeviceCapability<z.infer<typeof args>> = {
  capability: 'git.push',
  args,
  lacks: lacksGit,
  weigh: ({ path, remote, branch }, manifest) => {
    const weight = weighChange(path, manifest)
    if (weight.effect === 'refused') return weight
    return { ...weight, reason: `pushes ${branch ?? 'the current branch'} of ${path} to ${remote}` }
  },
  run: ({ path, remote, branch }, context) =>
    answered(context.signal, async () => {
      const place = placed(path, context.manifest, context, 'change')
      const settings = await checkoutAt(place, context)
      const to = await targetOf(settings, remote, context)
      const name = branch ?? (await currentBranch(place.path, context))
      const commit = await inCheckout(place.path, ['rev-parse', '--verify', `refs/heads/${name}^{commit}`], context)
      if (commit.exitCode !== 0) throw new Refused('not_found', `${place.path} has no branch ${name}`)

      // The hooks of a repository on this machine would run as the agent.
      const plain = to.kind === 'path' ? ['--receive-pack=git -c core.hooksPath=/dev/null receive-pack'] : []
      const words = ['push', '--porcelain', '--no-verify', '--no-signed', ...plain, '--', to.url]
      const ran = await inCheckout(place.path, [...words, `refs/heads/${name}:refs/heads/${name}`], context, {
        local: to.kind === 'path',
      })
      const why = behind(ran, name) ?? whyNotDone('git push', ran)
      if (why) return why
      const result = {
        ...{ path: place.path, remote, url: to.shown, branch: name, commit: commit.stdout.trim() },
        up_to_date: /^=\t/m.test(ran.stdout),
        output: tail(ran.stderr || ran.stdout),
      }
      return { ok: true, result, truncated: false }
    }),
}

/** Pushed to by its address, which we have judged, and not by its name, which git would look up again. */
async function targetOf(settings: string, remote: string, context: CapabilityContext): Promise<Remote> {
  const of = (field: string) => askSettings(settings, ['--get-all', `remote.${remote}.${field}`], context)
  const pushed = await of('pushurl')
  const urls = pushed.length > 0 ? pushed : await of('url')
  if (urls.length === 0) throw new Refused('not_found', `there is no remote ${remote}`)
  if (urls.length > 1) throw new Refused('failed', `${remote} has ${urls.length} addresses: one is pushed to`)
  const found = remoteOf(urls[0]!, context.manifest)
  if ('code' in found) throw new Refused(found.code, found.message)
  if (found.kind === 'path') await bareAt(placed(found.url, context.manifest, context, 'change'), context)
  return found
}

async function currentBranch(path: string, context: CapabilityContext): Promise<string> {
  const { exitCode, stdout } = await inCheckout(path, ['symbolic-ref', '--short', 'HEAD'], context)
  const name = branchName.safeParse(stdout.trim())
  if (exitCode !== 0 || !name.success) throw new Refused('failed', `${path} is on no branch that can be pushed`)
  return name.data
}

function behind(ran: RunResult, branch: string): Outcome | null {
  return /^!\t.*\[rejected\]/m.test(ran.stdout)
    ? failed('conflict', `${branch} has moved on at the remote: nothing is pushed by force`)
    : null
}
