import { z } from 'zod'
import { redact } from '../../../safety/redact.ts'
import type { CapabilityContext, DeviceCapability, Outcome, RunResult } from '../capability.ts'
import { failed } from '../capability.ts'
import { tail, whyNotDone } from '../programs.ts'
import { answered, Refused } from '../refused.ts'
import { rehearsed, restsOnLines } from '../rehearsed.ts'
import { type Remote, remoteOf } from '../remote.ts'
import { askSettings, bareAt, checkoutAt, inCheckout } from '../repository.ts'
import { type Place, pathArgument, placed, weighChange } from '../roots.ts'
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
  run: (args, context) =>
    answered(context.signal, async () => {
      const push = await whatToPush(args, context)
      const { place, to, name, commit } = push
      const ran = await pushed(push, [], context)
      const why = behind(ran, name) ?? whyNotDone('git push', ran)
      if (why) return why
      const result = {
        ...{ path: place.path, remote: args.remote, url: to.shown, branch: name, commit },
        up_to_date: /^=\t/m.test(ran.stdout),
        output: tail(ran.stderr || ran.stdout),
      }
      return { ok: true, result, truncated: false }
    }),
  /** A remote on this machine is asked by a push that sends nothing; another host is not called before somebody has agreed to that. */
  rehearse: (args, context) =>
    answered(context.signal, async () => {
      const push = await whatToPush(args, context)
      const { place, to, name, commit } = push
      const told = [`branch ${name} of ${place.path} is at ${commit.slice(0, 12)}`, `goes to ${to.shown}`]
      const rests = [name, commit, to.url]
      if (to.kind === 'host') {
        const since = await lastFetched(place.path, args.remote, name, context)
        told.push(since ? `since the last fetch, at ${since.slice(0, 12)}:` : 'its newest commits:')
        told.push(...(await commits(place.path, since ? `${since}..${commit}` : commit, context)))
        const untried = [`The remote was not asked: ${to.shown} is called only after somebody has agreed.`]
        return rehearsed({ told, untried, rests: restsOnLines(rests), tried: false })
      }
      const ran = await pushed(push, ['--dry-run'], context)
      const why = behind(ran, name) ?? whyNotDone('git push --dry-run', ran)
      if (why) return why
      // "<flag>\t<from>:<to>\t<summary>"
      const [, flag = '', , summary = ''] = /^(.)\t(\S+)\t(.*)$/m.exec(ran.stdout) ?? []
      const range = /^[0-9a-f]+\.\.[0-9a-f]+/.exec(summary)?.[0]
      told.push(
        flag === '=' ? 'the remote has all of it: nothing would be sent' : `the remote would change: ${summary}`,
      )
      if (flag !== '=') {
        told.push(...(await commits(place.path, range ?? commit, context)))
      }
      return rehearsed({ told, untried: [], rests: restsOnLines([...rests, flag, summary]), tried: true })
    }),
}

type Push = { place: Place; to: Remote; name: string; commit: string }

async function whatToPush({ path, remote, branch }: z.infer<typeof args>, context: CapabilityContext): Promise<Push> {
  const place = placed(path, context.manifest, context, 'change')
  const settings = await checkoutAt(place, context)
  const to = await targetOf(settings, remote, context)
  const name = branch ?? (await currentBranch(place.path, context))
  const commit = await inCheckout(place.path, ['rev-parse', '--verify', `refs/heads/${name}^{commit}`], context)
  if (commit.exitCode !== 0) throw new Refused('not_found', `${place.path} has no branch ${name}`)
  return { place, to, name, commit: commit.stdout.trim() }
}

function pushed({ place, to, name }: Push, more: readonly string[], context: CapabilityContext): Promise<RunResult> {
  // The hooks of a repository on this machine would run as the agent.
  const plain = to.kind === 'path' ? ['--receive-pack=git -c core.hooksPath=/dev/null receive-pack'] : []
  const words = ['push', ...more, '--porcelain', '--no-verify', '--no-signed', ...plain, '--', to.url]
  const local = to.kind === 'path'
  return inCheckout(place.path, [...words, `refs/heads/${name}:refs/heads/${name}`], context, { local })
}

/** What git knows of the remote without asking it; null where it was never fetched. */
async function lastFetched(
  path: string,
  remote: string,
  name: string,
  context: CapabilityContext,
): Promise<string | null> {
  const ref = `refs/remotes/${remote}/${name}^{commit}`
  const { exitCode, stdout } = await inCheckout(path, ['rev-parse', '--verify', '--quiet', ref], context)
  return exitCode === 0 ? stdout.trim() : null
}

/** The newest of them, a line each. */
async function commits(path: string, range: string, context: CapabilityContext): Promise<string[]> {
  const words = ['log', '--oneline', '--no-decorate', '--no-show-signature', '-n', '20', range, '--']
  const { stdout } = await inCheckout(path, words, context)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `  ${redact(line)}`)
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
