import { z } from 'zod'
import { type DeviceArgs, defineSpec, devicePath, path, present, same, type Verification, word } from './spec.ts'

/** A branch by its plain name; nothing that git could take for an option, a range or a deletion. */
export const branchName = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|[./](?=[A-Za-z0-9_+-]))*$/, 'is no branch name')
  .refine((name) => !name.split('/').some((part) => part.endsWith('.lock')), 'is no branch name')

export const gitCloneArgs = z.strictObject({
  url: z
    .string()
    .min(1)
    .max(1_000)
    .refine((text) => !hasPassword(text), 'must not hold a password'),
  path: devicePath,
  branch: branchName.optional(),
})

/** Inside the checkout, as git writes it; never git's own files. */
export const fileInCheckout = z
  .string()
  .min(1)
  .max(4_000)
  .refine((path) => !path.startsWith('-') && !path.startsWith('/') && !path.includes('\0'), 'is no path in a checkout')
  .refine((path) => path.split('/').every((part) => part !== '..' && part.toLowerCase() !== '.git'), 'leads elsewhere')

export const gitCommitArgs = z.strictObject({
  path: devicePath,
  message: z
    .string()
    .min(1)
    .max(5_000)
    .refine((text) => text.trim() !== '' && !text.includes('\0'), 'is no message'),
  /**
   * Exactly these, new and removed ones too; without it every tracked file that has changed, and no
   * other.
   */
  files: z.array(fileInCheckout).min(1).max(200).optional(),
  /** Becomes the trailer `Incident:`. */
  incident: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}$/)
    .optional(),
})

export const gitPushArgs = z.strictObject({
  path: devicePath,
  remote: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'is no name of a remote')
    .default('origin'),
  branch: branchName.optional(),
})

function hasPassword(text: string): boolean {
  try {
    const url = new URL(text)
    return url.password !== '' || (url.protocol === 'https:' && url.username !== '')
  } catch {
    return false
  }
}

export const gitClone = defineSpec({
  name: 'git_clone',
  isRare: true,
  capability: 'git.clone',
  about: 'Clone a repository into a new directory on a device.',
  args: gitCloneArgs,
  // No tool clones from a path of the device. Whether a host or a branch is allowed, the device
  // says.
  input: () =>
    gitCloneArgs.extend({
      url: z
        .string()
        .max(1_000)
        .regex(/^(https|ssh):\/\/[^\s]+$/, 'is not an https or ssh URL')
        .meta({ description: 'https or ssh', examples: ['https://git.example.com/web.git'] }),
      path: path.describe('a new directory'),
      branch: word.optional().describe('default its own'),
    }),
  effect: 'write',
  risk: 'medium',
  reversible: true,
  inside: true,
  grantable: true,
  asked: true,
  rehearses: true,
  toArgs: present,
  toOutput: same,
  summary: ({ url, path }) => `Clone ${url} into ${path}`,
  proof: {
    promised: 'the checkout stands at the commit that was cloned',
    otherwise: 'git cannot be asked about the checkout there; look at it yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: (result) => (commitIn(result) === null ? { capability: 'fs.stat', args: { path } } : head(path)),
    holds({ result: seen }, result) {
      if (seen === null) return { holds: false, observed: `${path} is not there` }
      return isAt(path, seen, commitIn(result))
    },
  }),
})

/** The commit that the device says it made or fetched. */
function commitIn(result: DeviceArgs | null): string | null {
  const commit = result?.commit
  return typeof commit === 'string' && /^[0-9a-f]{7,64}$/.test(commit) ? commit : null
}

/** Null: git did not open the repository, so its HEAD is unknown. */
function isAt(path: string, seen: DeviceArgs | null, commit: string | null): Verification {
  if (commit === null || seen?.exit_code !== 0 || typeof seen.stdout !== 'string') return null
  const now = seen.stdout.trim()
  return now.startsWith(commit)
    ? { holds: true, observed: `HEAD of ${path} is ${commit.slice(0, 12)}` }
    : { holds: false, observed: `HEAD of ${path} is ${now.slice(0, 64)}, not ${commit.slice(0, 12)}` }
}

export const gitCommit = defineSpec({
  name: 'git_commit',
  isRare: true,
  capability: 'git.commit',
  about: 'Commit changes in a repository on a device: all of them, or the files that are named.',
  args: gitCommitArgs,
  // A person reads message and files on a card, so they are shorter there, and a message says
  // something.
  input: () =>
    gitCommitArgs.omit({ incident: true }).extend({
      path,
      message: z.string().min(3).max(2_000).describe('of the commit'),
      files: z.array(word).min(1).max(100).optional().describe('paths in it; default all'),
    }),
  effect: 'write',
  risk: 'medium',
  reversible: true,
  inside: true,
  grantable: true,
  asked: true,
  rehearses: true,
  toArgs: present,
  toOutput: same,
  summary: ({ path, message }) => `Commit in ${path}: ${message}`,
  state: ({ path }: { path: string }) => head(path),
  proof: {
    promised: 'HEAD of the repository is the commit that was made',
    otherwise: 'git cannot be asked about the repository there; look at its log yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: () => head(path),
    holds: ({ result: seen }, result) => isAt(path, seen, commitIn(result)),
  }),
})

/** The commit that a checkout stands at. */
export const head = (path: string) => ({
  capability: 'shell.exec' as const,
  args: { argv: ['git', '-C', path, 'rev-parse', 'HEAD'] },
})

export const gitPush = defineSpec({
  name: 'git_push',
  isRare: true,
  capability: 'git.push',
  about: 'Push a branch of a repository on a device to its remote; never by force.',
  args: gitPushArgs,
  // Whether there is such a remote or branch, the device says.
  input: () =>
    gitPushArgs.extend({
      path,
      remote: word.optional().describe('default origin'),
      branch: word.optional().describe('default current'),
    }),
  effect: 'write',
  risk: 'high',
  reversible: false,
  inside: true,
  privileged: true,
  asked: true,
  rehearses: true,
  toArgs: present,
  toOutput: same,
  summary: ({ path, remote, branch }) => `Push ${branch ?? 'the branch'} of ${path} to ${remote ?? 'its remote'}`,
  state: ({ path }: { path: string }) => head(path),
  proof: { promised: null, otherwise: 'the remote is not asked; look at its branch yourself afterwards' },
})

export const gitSpecs = [gitClone, gitCommit, gitPush]
