import { z } from 'zod'
import { defineSpec, path, present, same, word } from './spec.ts'

export const gitClone = defineSpec({
  name: 'git_clone',
  capability: 'git.clone',
  about: 'Clone a repository into a new directory on a device.',
  input: z.strictObject({
    url: z
      .string()
      .max(1_000)
      .regex(/^(https|ssh):\/\/[^\s]+$/, 'is not an https or ssh URL'),
    path,
    branch: word.optional(),
  }),
  ...{ effect: 'write', risk: 'medium', reversible: true, inside: true, grantable: true, asked: true },
  toArgs: present,
  toOutput: same,
  summary: ({ url, path }) => `Clone ${url} into ${path}`,
  promise: ({ path }: { path: string }) => ({
    look: { capability: 'fs.stat', args: { path } },
    holds: ({ result }) => ({
      holds: result !== null,
      observed: result === null ? `${path} is not there` : 'the clone is there',
    }),
  }),
})

export const gitCommit = defineSpec({
  name: 'git_commit',
  capability: 'git.commit',
  about: 'Commit changes in a repository on a device: all of them, or the files that are named.',
  input: z.strictObject({
    path,
    message: z.string().min(3).max(2_000),
    files: z.array(word.max(1_000)).min(1).max(100).optional(),
  }),
  ...{ effect: 'write', risk: 'medium', reversible: true, inside: true },
  ...{ grantable: true, asked: true, rehearses: true },
  toArgs: present,
  toOutput: same,
  summary: ({ path, message }) => `Commit in ${path}: ${message}`,
  state: ({ path }: { path: string }) => head(path),
  promise({ path }: { path: string }, result) {
    const commit = result?.commit
    if (typeof commit !== 'string') return null
    return {
      look: head(path),
      holds({ result: seen }) {
        // A repository that git will not open for us tells nothing about its HEAD.
        if (seen?.exit_code !== 0 || typeof seen.stdout !== 'string') return null
        const now = seen.stdout.trim()
        return now.startsWith(commit)
          ? { holds: true, observed: 'HEAD is the commit that was made' }
          : { holds: false, observed: `HEAD of ${path} is ${now}` }
      },
    }
  },
})

const head = (path: string) => ({
  capability: 'shell.exec' as const,
  args: { argv: ['git', '-C', path, 'rev-parse', 'HEAD'] },
})

export const gitPush = defineSpec({
  name: 'git_push',
  capability: 'git.push',
  about: 'Push a branch of a repository on a device to its remote; never by force.',
  input: z.strictObject({ path, remote: word.optional(), branch: word.optional() }),
  ...{ effect: 'write', risk: 'high', reversible: false, inside: true, privileged: true, asked: true },
  toArgs: present,
  toOutput: same,
  summary: ({ path, remote, branch }) => `Push ${branch ?? 'the branch'} of ${path} to ${remote ?? 'its remote'}`,
  state: ({ path }: { path: string }) => head(path),
})
