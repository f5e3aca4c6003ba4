import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { describeItems, toList, toText } from '../../domain/say.ts'
import { fileInCheckout, head } from './git.ts'
import { defineSpec, devicePath, onlyLooks, path, present, same, word } from './spec.ts'

export const gitLogArgs = z.strictObject({ path: devicePath, limit: z.number().int().min(1).max(100).default(20) })

/** A commit by its digest or by a name; nothing that git could take for an option, a range or a path. */
const revision = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_+-]*(?:[./][A-Za-z0-9_+-]+)*(?:[~^]\d{0,4})*$/, 'is no commit, branch or tag')

export const gitShowArgs = z.strictObject({ path: devicePath, revision, file: fileInCheckout.optional() })

export const gitRevertArgs = z.strictObject({
  path: devicePath,
  /** By its digest: a name may mean another commit by the time that somebody has agreed. */
  revision: z
    .string()
    .regex(/^[0-9a-f]{7,64}$/, 'is not the digest of a commit, as git_log gives it')
    .meta({ description: 'digest as git_log gave it', examples: ['0123abc'] }),
})

const look = { effect: 'read', risk: 'none', reversible: true, proof: onlyLooks, inside: true } as const

export const gitLog = defineSpec({
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
  ...look,
  toArgs: present,
  toOutput: same,
  summary: ({ path }) => `Commits of ${path}`,
  say: ({ commits, uncommitted_total: open }, { path }) =>
    `${path}: ${describeItems(
      toList(commits).map(({ subject }) => toText(subject)),
      'commit',
    )}${Number(open) > 0 ? `; ${formatCount(Number(open), 'uncommitted file')}` : ''}`,
})

export const gitShow = defineSpec({
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
  ...look,
  toArgs: present,
  toOutput: same,
  summary: ({ path, revision }) => `Commit ${revision} of ${path}`,
  say: ({ commit, subject, author }, { revision }) =>
    `${revision} is ${toText(commit).slice(0, 12)} by ${toText(author)}: ${toText(subject)}`,
})

const shownCommit = z.looseObject({
  commit: z.string(),
  uncommitted: z.array(z.string()),
  uncommitted_total: z.number(),
})
const reverted = z.looseObject({ commit: z.string(), files: z.array(z.string()) })

export const gitRevert = defineSpec({
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
  toArgs: present,
  toOutput: same,
  summary: ({ path, revision }) => `Revert ${revision} in ${path}`,
  state: ({ path }: { path: string }) => head(path),
  proof: {
    promised: 'HEAD is the commit that takes the change back, and its files in the working tree are as it has them',
    otherwise: 'git cannot be asked about the repository there; look at its log yourself afterwards',
  },
  promise: ({ path }: { path: string }) => ({
    look: () => ({ capability: 'git.show', args: { path, revision: 'HEAD' } }),
    holds({ result: seen }, result) {
      const now = shownCommit.safeParse(seen)
      const made = reverted.safeParse(result)
      if (!now.success || !made.success) return null
      const { commit, uncommitted, uncommitted_total: total } = now.data
      const short = made.data.commit.slice(0, 12)
      if (commit !== made.data.commit)
        return { holds: false, observed: `HEAD of ${path} is ${commit.slice(0, 12)}, not ${short}` }
      const other = made.data.files.find((file) => uncommitted.includes(file))
      if (other !== undefined) return { holds: false, observed: `${other} in ${path} is not as ${short} has it` }
      // It may be among those that were left out.
      if (total > uncommitted.length) return null
      return { holds: true, observed: `HEAD of ${path} is ${short}, and its files are as it has them` }
    },
  }),
})

export const gitHistorySpecs = [gitLog, gitShow, gitRevert]
