import { z } from 'zod'
import type { Changed } from '../../domain/changed.ts'
import { formatCount } from '../../domain/format.ts'
import { describeItems, toList, toText } from '../../domain/say.ts'
import type { LeftBehind, RecordedUndo } from '../../domain/undo.ts'
import {
  type DeviceArgs,
  defineSpec,
  devicePath,
  lastingWrite,
  path,
  plainRead,
  same,
  undoableWrite,
  type Verification,
  withoutUndefined,
  word,
} from './spec.ts'

/**
 * A branch by its plain name. The pattern excludes names that git could read as an option, a range
 * or a deletion.
 */
export const branchName = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|[./](?=[A-Za-z0-9_+-]))*$/, 'is not a branch name')
  .refine((name) => !name.split('/').some((part) => part.endsWith('.lock')), 'is not a branch name')

export const gitCloneArgs = z.strictObject({
  url: z
    .string()
    .min(1)
    .max(1_000)
    .refine((text) => !hasPassword(text), 'must not hold a password'),
  path: devicePath,
  branch: branchName.optional(),
})

/** A path inside the checkout, as git writes paths; never one of git's own files. */
const fileInCheckout = z
  .string()
  .min(1)
  .max(4_000)
  .refine(
    (path) => !path.startsWith('-') && !path.startsWith('/') && !path.includes('\0'),
    'is not a path in a checkout',
  )
  .refine((path) => path.split('/').every((part) => part !== '..' && part.toLowerCase() !== '.git'), 'leads elsewhere')

export const gitCommitArgs = z.strictObject({
  path: devicePath,
  message: z
    .string()
    .min(1)
    .max(5_000)
    .refine((text) => text.trim() !== '' && !text.includes('\0'), 'is not a message'),
  /**
   * The files to commit. A named file may be new or removed. If absent, every changed tracked file
   * is committed.
   */
  files: z.array(fileInCheckout).min(1).max(200).optional(),
  /** The id of the incident, which the commit names in the trailer `Incident:`. */
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
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'is not the name of a remote')
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

const gitClone = defineSpec({
  name: 'git_clone',
  isRare: true,
  capability: 'git.clone',
  about: 'Clone a repository into a new directory on a device.',
  args: gitCloneArgs,
  // Allows no clone from a path of the device. The device itself decides which hosts and branches
  // are allowed.
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
  ...undoableWrite,
  summary: ({ url, path }) => `Clone ${url} into ${path}`,
  changes: commitMade('cloned at'),
  proof: {
    promised: 'the checkout is at the commit that was cloned',
    otherwise: 'git cannot read the checkout there; check the checkout yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: (result) => (commitIn(result) === null ? { capability: 'fs.stat', args: { path } } : head(path)),
    holds({ result: seen }, result) {
      if (seen === null) return { holds: false, observed: `${path} does not exist` }
      return isAt(path, seen, commitIn(result))
    },
  }),
})

function commitMade(what: string) {
  return (result: DeviceArgs, { path }: { path: string }): Changed => {
    const commit = commitIn(result)
    return commit === null ? null : [`${path}: ${what} ${commit.slice(0, 12)}`]
  }
}

/** Returns the id of the commit that the device reports as made or fetched. Null for no id. */
function commitIn(result: DeviceArgs | null): string | null {
  const commit = result?.commit
  return typeof commit === 'string' && /^[0-9a-f]{7,64}$/.test(commit) ? commit : null
}

/**
 * Compares HEAD with the commit. Null if git did not open the repository, so that its HEAD is
 * unknown.
 */
function isAt(path: string, seen: DeviceArgs | null, commit: string | null): Verification {
  if (commit === null || seen?.exit_code !== 0 || typeof seen.stdout !== 'string') return null
  const now = seen.stdout.trim()
  return now.startsWith(commit)
    ? { holds: true, observed: `HEAD of ${path} is ${commit.slice(0, 12)}` }
    : { holds: false, observed: `HEAD of ${path} is ${now.slice(0, 64)}, not ${commit.slice(0, 12)}` }
}

const madeCommit = z.looseObject({
  commit: z.string().regex(/^[0-9a-f]{40,64}$/),
  files: z.array(z.string()),
})
const shownHead = z.looseObject({
  commit: z.string(),
  uncommitted: z.array(z.string()),
  uncommitted_total: z.number(),
})

const headOf = (path: string) => `HEAD of ${path}`
const dirtyIn = (path: string) => `what no commit has of these files in ${path}`
/** The most files that an undo compares here. The device compares all files of the commit. */
const maxFiles = 200

/**
 * Undoes a commit with a new commit that reverts it, if it is still HEAD and none of its files was
 * edited since.
 */
const revertOfCommit = {
  does: ({ path }: { path: string }) =>
    `git_revert of exactly the new commit, while it is HEAD of ${path} and its files have no later changes`,
  of({ path }: { path: string }, output: DeviceArgs): RecordedUndo {
    const made = madeCommit.safeParse(output)
    if (!made.success) return { none: 'the device did not report which commit it made' }
    const { commit, files } = made.data
    return {
      tool: 'git_revert',
      arguments: { path, revision: commit, if_head: commit },
      left: { [headOf(path)]: commit, [dirtyIn(path)]: 'nothing' },
      files: files.slice(0, maxFiles),
    }
  },
  look: ({ path }: { path: string }) => ({ capability: 'git.show' as const, args: { path, revision: 'HEAD' } }),
  facts(seen: DeviceArgs | null, { path }: { path: string }, files: readonly string[]): LeftBehind | null {
    const now = shownHead.safeParse(seen)
    if (!now.success) return null
    const { commit, uncommitted, uncommitted_total: total } = now.data
    const dirty = files.filter((file) => uncommitted.includes(file))
    // Returns null if a file of the commit may be among the omitted files.
    if (dirty.length === 0 && total > uncommitted.length) return null
    return { [headOf(path)]: commit, [dirtyIn(path)]: dirty.slice(0, 10).join(', ') || 'nothing' }
  },
}

const gitCommit = defineSpec({
  name: 'git_commit',
  isRare: true,
  capability: 'git.commit',
  about: 'Commit changes in a repository on a device: all changes, or only the named files.',
  args: gitCommitArgs,
  // Limits message and files to what a person can read on a card, and requires a message.
  input: () =>
    gitCommitArgs.omit({ incident: true }).extend({
      path,
      message: z.string().min(3).max(2_000).describe('of the commit'),
      files: z.array(word).min(1).max(100).optional().describe('paths in it; default all'),
    }),
  ...undoableWrite,
  summary: ({ path, message }) => `Commit in ${path}: ${message}`,
  changes: commitMade('new commit'),
  state: ({ path }: { path: string }) => head(path),
  proof: {
    promised: 'HEAD of the repository is the commit that was made',
    otherwise: 'git cannot read the repository there; look at the git log yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: () => head(path),
    holds: ({ result: seen }, result) => isAt(path, seen, commitIn(result)),
  }),
  undo: revertOfCommit,
})

/** Reads the present commit of a checkout. */
const head = (path: string) => ({
  capability: 'shell.exec' as const,
  args: { argv: ['git', '-C', path, 'rev-parse', 'HEAD'] },
})

const gitPush = defineSpec({
  name: 'git_push',
  isRare: true,
  capability: 'git.push',
  about: 'Push a branch of a repository on a device to its remote; never by force.',
  args: gitPushArgs,
  // The device checks that remote and branch exist.
  input: () =>
    gitPushArgs.extend({
      path,
      remote: word.optional().describe('default origin'),
      branch: word.optional().describe('default current'),
    }),
  ...lastingWrite,
  summary: ({ path, remote, branch }) => `Push ${branch ?? 'the branch'} of ${path} to ${remote ?? 'its remote'}`,
  changes({ up_to_date: isUpToDate, branch, remote }) {
    if (typeof isUpToDate !== 'boolean') return null
    return isUpToDate ? [] : [`${toText(branch)} was pushed to ${toText(remote)}`]
  },
  state: ({ path }: { path: string }) => head(path),
  proof: { promised: null, otherwise: 'the remote is not read; check its branch yourself afterwards' },
})

export const gitSpecs = [gitClone, gitCommit, gitPush]

export const gitLogArgs = z.strictObject({ path: devicePath, limit: z.number().int().min(1).max(100).default(20) })

/**
 * A commit by digest or name. The pattern excludes texts that git could read as an option, a range
 * or a path.
 */
const revision = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_+-]*(?:[./][A-Za-z0-9_+-]+)*(?:[~^]\d{0,4})*$/, 'is not a commit, branch or tag')

export const gitShowArgs = z.strictObject({ path: devicePath, revision, file: fileInCheckout.optional() })

export const gitRevertArgs = z.strictObject({
  path: devicePath,
  /** The commit by its digest. A name may mean another commit when the approval comes. */
  revision: z
    .string()
    .regex(/^[0-9a-f]{7,64}$/, 'is not the digest of a commit, as git_log gives it')
    .meta({ description: 'digest as git_log gave it', examples: ['0123abc'] }),
  /** The HEAD that the checkout must have. The device compares HEAD when it moves the branch. */
  if_head: z
    .string()
    .regex(/^[0-9a-f]{40,64}$/, 'is not the whole digest of a commit')
    .meta({ description: 'only if HEAD is this', examples: ['0'.repeat(40)] })
    .optional(),
})

const gitLog = defineSpec({
  name: 'git_log',
  isRare: true,
  capability: 'git.log',
  about: 'The newest commits of a repository on a device, and files with uncommitted changes.',
  args: gitLogArgs,
  input: () =>
    gitLogArgs.extend({
      path,
      limit: z.number().int().min(1).max(100).optional().describe('commits; default 20'),
    }),
  ...plainRead,
  summary: ({ path }) => `Commits of ${path}`,
  say: ({ commits, uncommitted_total: open }, { path }) =>
    `${path}: ${describeItems(
      toList(commits).map(({ subject }) => toText(subject)),
      'commit',
    )}${Number(open) > 0 ? `; ${formatCount(Number(open), 'uncommitted file')}` : ''}`,
})

const gitShow = defineSpec({
  name: 'git_show',
  isRare: true,
  capability: 'git.show',
  about: 'What a commit on a device changed; with file, that file as the commit left it.',
  args: gitShowArgs,
  input: () =>
    gitShowArgs.extend({
      path,
      revision: word.describe('as HEAD~1'),
      file: word.optional().describe('path in it'),
    }),
  ...plainRead,
  summary: ({ path, revision }) => `Commit ${revision} of ${path}`,
  say: ({ commit, subject, author }, { revision }) =>
    `${revision} is ${toText(commit).slice(0, 12)} by ${toText(author)}: ${toText(subject)}`,
})

const gitRevert = defineSpec({
  name: 'git_revert',
  isRare: true,
  capability: 'git.revert',
  about: 'Take back what one commit changed, by a new commit on the branch of a repository on a device.',
  args: gitRevertArgs,
  input: () => gitRevertArgs.extend({ path }),
  effect: 'write',
  risk: 'medium',
  reversible: true,
  inside: true,
  asked: true,
  rehearses: true,
  toArgs: withoutUndefined,
  toOutput: same,
  summary: ({ path, revision }, about) => `Revert ${about ?? revision} in ${path}`,
  changes: commitMade('taken back by commit'),
  state: ({ path }: { path: string }) => head(path),
  proof: {
    promised: 'HEAD is the commit that reverts the change, and its files have no uncommitted changes',
    otherwise: 'git cannot read the repository there; look at the git log yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: () => ({ capability: 'git.show', args: { path, revision: 'HEAD' } }),
    holds({ result: seen }, result) {
      const now = shownHead.safeParse(seen)
      const made = madeCommit.safeParse(result)
      if (!now.success || !made.success) return null
      const { commit, uncommitted, uncommitted_total: total } = now.data
      const short = made.data.commit.slice(0, 12)
      if (commit !== made.data.commit)
        return { holds: false, observed: `HEAD of ${path} is ${commit.slice(0, 12)}, not ${short}` }
      const other = made.data.files.find((file) => uncommitted.includes(file))
      if (other !== undefined) return { holds: false, observed: `${other} in ${path} differs from ${short}` }
      // Returns null if the file may be among the omitted files.
      if (total > uncommitted.length) return null
      return { holds: true, observed: `HEAD of ${path} is ${short}, and its files have no uncommitted changes` }
    },
  }),
  undo: revertOfCommit,
})

export const gitHistorySpecs = [gitLog, gitShow, gitRevert]
