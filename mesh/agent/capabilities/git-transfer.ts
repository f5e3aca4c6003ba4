import { randomBytes } from 'node:crypto'
import { lstat, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { redact } from '../../../safety/redact.ts'
import { branchName, gitCloneArgs, gitPushArgs } from '../../specs/git.ts'
import {
  type CallWeight,
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  failedOutcome,
  type RunResult,
  toOutcome,
} from '../capability.ts'
import { type Remote, remoteOf } from '../checkout.ts'
import { type ManifestPath, type PathRejection, requirePlace, weighWrite } from '../manifest.ts'
import { tail, whyNotDone } from '../programs.ts'
import { reportOutcome, restsOnLines } from '../rehearsal-report.ts'
import {
  askSettings,
  assertOwn,
  authorOf,
  checkoutAt,
  git,
  gitEnvironment,
  inCheckout,
  missingGit,
  requireBareAt,
} from '../repository.ts'
import { type OpenEntry, openEntry, within, withParentOf } from '../walk.ts'
import { gitCommit } from './git.ts'

/**
 * Pushes one branch to the branch with its name, never by force: `{ path, remote, url, branch,
 * commit, before }`. The remote must be on a host of the manifest, or a bare repository in a
 * writable root. Fails with `conflict` if the remote has newer commits.
 */
export const gitPush: DeviceCapability<z.infer<typeof gitPushArgs>> = {
  capability: 'git.push',
  args: gitPushArgs,
  missingPrerequisite: missingGit,
  weigh: ({ path, remote, branch }, manifest) => {
    const weight = weighWrite(path, manifest)
    if (weight.effect === 'refused') return weight
    return { ...weight, reason: `pushes ${branch ?? 'the current branch'} of ${path} to ${remote}` }
  },
  run: (args, context) =>
    toOutcome(context.signal, async () => {
      const push = await resolvePush(args, context)
      const { place, to, name, commit } = push
      const ran = await runPush(push, [], context)
      const why = whyBehind(ran, name) ?? whyNotDone('git push', ran)
      if (why) return why
      const result = {
        path: place.path,
        remote: args.remote,
        url: to.shown,
        branch: name,
        commit,
        up_to_date: /^=\t/m.test(ran.stdout),
        output: tail(ran.stderr || ran.stdout),
      }
      return { ok: true, result, truncated: false }
    }),
  /**
   * Tries the push with git's dry run if the remote is on this machine. Another host is contacted
   * only after approval.
   */
  rehearse: (args, context) =>
    toOutcome(context.signal, async () => {
      const push = await resolvePush(args, context)
      const { place, to, name, commit } = push
      const told = [`branch ${name} of ${place.path} is at ${commit.slice(0, 12)}`, `goes to ${to.shown}`]
      const rests = [name, commit, to.url]
      if (to.kind === 'host') {
        const since = await lastFetched(place.path, args.remote, name, context)
        told.push(since ? `since the last fetch, at ${since.slice(0, 12)}:` : 'its newest commits:')
        told.push(...(await commits(place.path, since ? `${since}..${commit}` : commit, context)))
        const untried = [`The remote was not checked: ${to.shown} is contacted only after an approval.`]
        return reportOutcome({ told, untried, rests: restsOnLines(rests), tried: false })
      }
      const ran = await runPush(push, ['--dry-run'], context)
      const why = whyBehind(ran, name) ?? whyNotDone('git push --dry-run', ran)
      if (why) return why
      // The format of a line: "<flag>\t<from>:<to>\t<summary>"
      const [, flag = '', , summary = ''] = /^(.)\t(\S+)\t(.*)$/m.exec(ran.stdout) ?? []
      const range = /^[0-9a-f]+\.\.[0-9a-f]+/.exec(summary)?.[0]
      told.push(
        flag === '=' ? 'the remote has all commits: nothing would be sent' : `the remote would change: ${summary}`,
      )
      if (flag !== '=') {
        told.push(...(await commits(place.path, range ?? commit, context)))
      }
      return reportOutcome({ told, untried: [], rests: restsOnLines([...rests, flag, summary]), tried: true })
    }),
}

type Push = { place: ManifestPath; to: Remote; name: string; commit: string }

async function resolvePush(
  { path, remote, branch }: z.infer<typeof gitPushArgs>,
  context: CapabilityContext,
): Promise<Push> {
  const place = requirePlace(path, context.manifest, context, 'change')
  const settings = await checkoutAt(place, context)
  const to = await targetOf(settings, remote, context)
  const name = branch ?? (await currentBranch(place.path, context))
  const commit = await inCheckout(place.path, ['rev-parse', '--verify', `refs/heads/${name}^{commit}`], context)
  if (commit.exitCode !== 0) throw new CapabilityError('not_found', `${place.path} has no branch ${name}`)
  return { place, to, name, commit: commit.stdout.trim() }
}

function runPush({ place, to, name }: Push, more: readonly string[], context: CapabilityContext): Promise<RunResult> {
  // Disables the hooks of a repository on this machine, because they would run as the agent.
  const plain = to.kind === 'path' ? ['--receive-pack=git -c core.hooksPath=/dev/null receive-pack'] : []
  const words = ['push', ...more, '--porcelain', '--no-verify', '--no-signed', ...plain, '--', to.url]
  const local = to.kind === 'path'
  return inCheckout(place.path, [...words, `refs/heads/${name}:refs/heads/${name}`], context, { local })
}

/**
 * Returns the remote's commit that git fetched last, without contacting the remote. Null if git
 * never fetched the branch.
 */
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

/** Lists the newest commits, one line each. */
async function commits(path: string, range: string, context: CapabilityContext): Promise<string[]> {
  const words = ['log', '--oneline', '--no-decorate', '--no-show-signature', '-n', '20', range, '--']
  const { stdout } = await inCheckout(path, words, context)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `  ${redact(line)}`)
}

/**
 * Finds the checked address of the remote. The push uses this address and not the remote's name,
 * which git would look up again.
 */
async function targetOf(settings: string, remote: string, context: CapabilityContext): Promise<Remote> {
  const of = (field: string) => askSettings(settings, ['--get-all', `remote.${remote}.${field}`], context)
  const runPush = await of('pushurl')
  const urls = runPush.length > 0 ? runPush : await of('url')
  if (urls.length === 0) throw new CapabilityError('not_found', `there is no remote ${remote}`)
  if (urls.length > 1)
    throw new CapabilityError('failed', `${remote} has ${urls.length} addresses, and a push needs exactly one address`)
  const found = remoteOf(urls[0]!, context.manifest)
  if ('code' in found) throw new CapabilityError(found.code, found.message)
  if (found.kind === 'path') await requireBareAt(requirePlace(found.url, context.manifest, context, 'change'), context)
  return found
}

async function currentBranch(path: string, context: CapabilityContext): Promise<string> {
  const { exitCode, stdout } = await inCheckout(path, ['symbolic-ref', '--short', 'HEAD'], context)
  const name = branchName.safeParse(stdout.trim())
  if (exitCode !== 0 || !name.success)
    throw new CapabilityError('failed', `${path} is not on a branch that can be pushed`)
  return name.data
}

function whyBehind(ran: RunResult, branch: string): CapabilityOutcome | null {
  return /^!\t.*\[rejected\]/m.test(ran.stdout)
    ? failedOutcome('conflict', `the remote has newer commits on ${branch}: Nightshift never force-pushes`)
    : null
}

/**
 * Clones from a host of the manifest, or from a bare repository inside the roots, to a path that
 * does not exist yet: `{ path, url, branch, commit }`. Clones to a directory beside the path and
 * renames it, so the path never has an incomplete clone. Submodules, hooks, templates, redirects
 * and other protocols are disabled.
 */
export const gitClone: DeviceCapability<z.infer<typeof gitCloneArgs>> = {
  capability: 'git.clone',
  args: gitCloneArgs,
  missingPrerequisite: missingGit,
  weigh: ({ url, path }, manifest) => {
    const remote = remoteOf(url, manifest)
    if ('code' in remote) return refusedBy(remote)
    const weight = weighWrite(path, manifest)
    return weight.effect === 'refused' ? weight : { ...weight, reason: `clones ${remote.shown} to ${path}` }
  },
  /**
   * Checks the path, and lists the branches of a repository on this machine. Another host is
   * contacted only after approval.
   */
  rehearse: ({ url, path, branch }, context) =>
    toOutcome(context.signal, async () => {
      const remote = await reachable(url, context)
      const place = requirePlace(path, context.manifest, context, 'change')
      return withParentOf(place, async (directory, name) => {
        await assertFree(directory, name, place.path)
        const told = [`${place.path} is free, and its directory is the agent's own`, `comes from ${remote.shown}`]
        const rests = [place.path, remote.url, String(directory.stat.ino)]
        if (remote.kind === 'host') {
          const untried = [`The repository was not checked: ${remote.shown} is contacted only after an approval.`]
          return reportOutcome({ told, untried, rests: restsOnLines(rests), tried: false })
        }
        const found = await branchesOf(remote, branch, context)
        told.push(...found.told)
        return reportOutcome({ told, untried: [], rests: restsOnLines([...rests, found.commit]), tried: true })
      })
    }),
  run: ({ url, path, branch }, context) =>
    toOutcome(context.signal, async () => {
      const remote = await reachable(url, context)
      const place = requirePlace(path, context.manifest, context, 'change')
      return withParentOf(place, async (directory, name) => {
        await assertFree(directory, name, place.path)
        const temporary = `.nightshift-${randomBytes(8).toString('hex')}`
        const beside = join(directory.path, temporary)
        const local = remote.kind === 'path'
        const words = ['clone', '--no-hardlinks', '--no-local', '--no-recurse-submodules', '--template=', '--quiet']
        const from = branch === undefined ? [] : [`--branch=${branch}`]
        try {
          const ran = await context.run(git(...words, ...from, '--', remote.url, beside), {
            cwd: directory.path,
            env: gitEnvironment(authorOf(context), local),
            confine: 'write',
          })
          const why = whyNotDone('git clone', ran)
          if (why) return why
          const commit = await inCheckout(beside, ['rev-parse', 'HEAD'], context)
          const head = await inCheckout(beside, ['symbolic-ref', '--short', 'HEAD'], context)
          await takePlace(within(directory.handle, temporary), within(directory.handle, name), place.path)
          const result = {
            path: place.path,
            url: remote.shown,
            branch: head.exitCode === 0 ? head.stdout.trim() : null,
            commit: commit.exitCode === 0 ? commit.stdout.trim() : null,
          }
          return { ok: true, result, truncated: false }
        } finally {
          await rm(within(directory.handle, temporary), { recursive: true, force: true })
        }
      })
    }),
}

async function assertFree(directory: OpenEntry, name: string, path: string): Promise<void> {
  assertOwn(directory)
  const there = await openEntry(directory, name)
  await there?.handle.close()
  if (there) throw new CapabilityError('conflict', `${path} exists already`)
}

/** Describes a repository on this machine for a clone: commit, branches and size. */
async function branchesOf(remote: Remote, branch: string | undefined, context: CapabilityContext) {
  const ask = (...words: string[]) =>
    context.run(git(`--git-dir=${remote.url}`, ...words), {
      cwd: remote.url,
      env: gitEnvironment(authorOf(context), true),
      confine: 'write',
    })
  const ref = branch === undefined ? 'HEAD' : `refs/heads/${branch}`
  const commit = await ask('rev-parse', '--verify', '--quiet', `${ref}^{commit}`)
  if (commit.exitCode !== 0 && branch !== undefined)
    throw new CapabilityError('not_found', `${remote.shown} has no branch ${branch}`)
  const listed = await ask('for-each-ref', '--count=21', '--format=%(refname:short) %(objectname:short)', 'refs/heads')
  const size = /^size-pack: (\d+)$/m.exec((await ask('count-objects', '-v')).stdout)?.[1] ?? '?'
  const names = listed.stdout.split('\n').filter((line) => line !== '')
  const at = commit.exitCode === 0 ? commit.stdout.trim() : ''
  const told = [
    at === '' ? 'the repository has no commit yet' : `the checkout would be at ${at.slice(0, 12)}`,
    `its branches: ${names.slice(0, 20).join(', ') || 'none'}${names.length > 20 ? ', and more' : ''}`,
    `its packed objects take ${size} KiB`,
  ]
  return { told, commit: at }
}

async function reachable(url: string, context: CapabilityContext): Promise<Remote> {
  const remote = remoteOf(url, context.manifest)
  if ('code' in remote) throw new CapabilityError(remote.code, remote.message)
  if (remote.kind === 'path') await requireBareAt(requirePlace(remote.url, context.manifest, context, 'look'), context)
  return remote
}

/**
 * Renames the clone to its path. A rename onto a directory fails unless the directory is empty; a
 * rename onto a file always fails.
 */
async function takePlace(from: string, to: string, path: string): Promise<void> {
  if (await lstat(to).catch(() => null)) throw new CapabilityError('conflict', `${path} was created meanwhile`)
  await rename(from, to)
}

const refusedBy = ({ code, message }: PathRejection): CallWeight => ({
  effect: 'refused',
  reason: message,
  code,
  command: null,
})

export const gitCapabilities = [gitClone, gitCommit, gitPush]
