import { randomBytes } from 'node:crypto'
import { lstat, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { CapabilityContext, DeviceCapability } from '../capability.ts'
import { whyNotDone } from '../programs.ts'
import { answered, Refused } from '../refused.ts'
import { rehearsed, restsOnLines } from '../rehearsed.ts'
import { hasPassword, type Remote, remoteOf } from '../remote.ts'
import { assertOwn, authorOf, bareAt, git, gitEnvironment, inCheckout } from '../repository.ts'
import { pathArgument, placed, weighChange } from '../roots.ts'
import { beside, entry, type Held, within } from '../walk.ts'
import { branchName, lacksGit, refusedBy } from './git.ts'

const args = z.strictObject({
  url: z
    .string()
    .min(1)
    .max(1_000)
    .refine((text) => !hasPassword(text), 'must not hold a password'),
  path: pathArgument,
  branch: branchName.optional(),
})

/**
 * Clones from a host of the manifest, or from a bare repository inside the roots, to a path that does not exist yet:
 * `{ path, url, branch, commit }`. It is cloned beside and renamed, so the path holds all of it or nothing. No submodules, hooks or
 * templates; what git follows elsewhere (redirects, other protocols) is off.
 */
export const gitClone: DeviceCapability<z.infer<typeof args>> = {
  capability: 'git.clone',
  args,
  lacks: lacksGit,
  weigh: ({ url, path }, manifest) => {
    const remote = remoteOf(url, manifest)
    if ('code' in remote) return refusedBy(remote)
    const weight = weighChange(path, manifest)
    return weight.effect === 'refused' ? weight : { ...weight, reason: `clones ${remote.shown} to ${path}` }
  },
  /**
   * The place is looked at, and a repository on this machine is asked for its branches; another host is not called before somebody has agreed
   * to that.
   */
  rehearse: ({ url, path, branch }, context) =>
    answered(context.signal, async () => {
      const remote = await reachable(url, context)
      const place = placed(path, context.manifest, context, 'change')
      return beside(place, async (directory, name) => {
        await assertFree(directory, name, place.path)
        const told = [`${place.path} is free, and its directory is the agent's own`, `comes from ${remote.shown}`]
        const rests = [place.path, remote.url, String(directory.stat.ino)]
        if (remote.kind === 'host') {
          const untried = [`The repository was not asked: ${remote.shown} is called only after somebody has agreed.`]
          return rehearsed({ told, untried, rests: restsOnLines(rests), tried: false })
        }
        const found = await branchesOf(remote, branch, context)
        told.push(...found.told)
        return rehearsed({ told, untried: [], rests: restsOnLines([...rests, found.commit]), tried: true })
      })
    }),
  run: ({ url, path, branch }, context) =>
    answered(context.signal, async () => {
      const remote = await reachable(url, context)
      const place = placed(path, context.manifest, context, 'change')
      return beside(place, async (directory, name) => {
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

async function assertFree(directory: Held, name: string, path: string): Promise<void> {
  assertOwn(directory)
  const there = await entry(directory, name)
  await there?.handle.close()
  if (there) throw new Refused('conflict', `${path} exists already`)
}

/** What a clone of a repository on this machine would stand at, and how large it is. */
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
    throw new Refused('not_found', `${remote.shown} has no branch ${branch}`)
  const listed = await ask('for-each-ref', '--count=21', '--format=%(refname:short) %(objectname:short)', 'refs/heads')
  const size = /^size-pack: (\d+)$/m.exec((await ask('count-objects', '-v')).stdout)?.[1] ?? '?'
  const names = listed.stdout.split('\n').filter((line) => line !== '')
  const at = commit.exitCode === 0 ? commit.stdout.trim() : ''
  const told = [
    at === '' ? 'it has no commit yet' : `would stand at ${at.slice(0, 12)}`,
    `its branches: ${names.slice(0, 20).join(', ') || 'none'}${names.length > 20 ? ', and more' : ''}`,
    `its packed objects take ${size} KiB`,
  ]
  return { told, commit: at }
}

async function reachable(url: string, context: CapabilityContext): Promise<Remote> {
  const remote = remoteOf(url, context.manifest)
  if ('code' in remote) throw new Refused(remote.code, remote.message)
  if (remote.kind === 'path') await bareAt(placed(remote.url, context.manifest, context, 'look'), context)
  return remote
}

/** A rename onto a directory that somebody made meanwhile fails unless it is empty; onto a file it always fails. */
async function takePlace(from: string, to: string, path: string): Promise<void> {
  if (await lstat(to).catch(() => null)) throw new Refused('conflict', `${path} was made meanwhile`)
  await rename(from, to)
}
