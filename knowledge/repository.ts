import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readVariables } from '../config/variables.ts'
import { redact } from '../safety/redact.ts'
import { type FoundPolicy, maxPolicyFileBytes, policyPath } from './policy-file.ts'
import { type FoundFile, faults, fileName, maxFileBytes, maxFiles, parseFiles, type ReadRunbooks } from './read.ts'

/**
 * Reads the runbooks of a Git repository. Clones the repository bare, one commit deep, reads the
 * clone object by object, and removes it. No file is checked out, so no hook, filter, symbolic link
 * or submodule has an effect. Nothing is pushed.
 */
export type Repository = {
  /** `https://…`, `ssh://…`, or `file:///…`; without credentials. */
  url: string
  branch: string | null
  /** The password of a Basic header, for https. */
  token: string | null
}

const withinMs = 60_000
const maxCloneBytes = 64 * 1024 * 1024
const maxOutputBytes = 16 * 1024 * 1024

const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.attributesFile=/dev/null',
  'credential.helper=',
  'core.askPass=',
  'http.followRedirects=false',
  'submodule.recurse=false',
  'fetch.fsckObjects=true',
  'gc.auto=0',
  'maintenance.auto=false',
]

/** Thrown if a repository could not be read. The message has the reason, without credentials. */
export class RepositoryError extends Error {
  override name = 'RepositoryError' as const
}

/** Returns the newest commit of the repository's branch without fetching anything. */
export async function askCommit(repository: Repository): Promise<string> {
  const ref = repository.branch === null ? 'HEAD' : `refs/heads/${repository.branch}`
  const out = await git(repository, ['ls-remote', '--', repository.url, ref])
  const [, commit] = /^([0-9a-f]{40,64})\t/.exec(out.toString('utf8')) ?? []
  if (!commit) throw new RepositoryError(`there is no branch ${repository.branch ?? 'that HEAD names'}`)
  return commit
}

/**
 * Reads every `<name>/SKILL.md` of the newest commit, at the top level or in `knowledge/`,
 * `runbooks/` or `skills/`.
 */
export async function readRepository(repository: Repository): Promise<ReadRunbooks & { commit: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'nightshift-knowledge-'))
  try {
    const branch = repository.branch === null ? [] : ['--branch', repository.branch]
    const words = ['clone', '--bare', '--depth=1', '--single-branch', '--no-tags', '--no-recurse-submodules']
    // Uses an empty template for the clone, because the machine's template may contain hooks.
    const clone = join(directory, 'clone.git')
    await git(repository, [...words, '--template=', ...branch, '--', repository.url, clone], clone)
    const inside = (...rest: string[]) => git(repository, [`--git-dir=${clone}`, ...rest])
    const commit = (await inside('rev-parse', '--verify', 'HEAD')).toString('utf8').trim()
    const listed = await inside('ls-tree', '-r', '-l', '-z', '--full-tree', commit)
    const entries = entriesOf(listed.toString('utf8'))
    const files: FoundFile[] = []
    for (const { name, mode, bytes, object } of entries.slice(0, maxFiles)) {
      if (mode === '120000') files.push({ name, problem: faults.link })
      else if (mode !== '100644' && mode !== '100755') files.push({ name, problem: faults.notAFile })
      else if (bytes > maxFileBytes) files.push({ name, problem: faults.tooLarge(bytes) })
      else files.push({ name, bytes: await inside('cat-file', 'blob', object) })
    }
    if (entries.length > maxFiles)
      files.push({ name: entries[maxFiles]!.name, problem: faults.tooMany(entries.length) })
    const policies: FoundPolicy[] = []
    for (const entry of policiesOf(listed.toString('utf8')))
      policies.push(await readPolicyEntry(entry, commit, () => inside('cat-file', 'blob', entry.object)))
    return { ...parseFiles('repository', files), policies, commit }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

type Entry = { name: string; mode: string; bytes: number; object: string }

const runbookPath = new RegExp(`^(?:(?:knowledge|runbooks|skills)/)?([^/]{1,200})/${fileName.replace('.', '\\.')}$`)

function entriesOf(listed: string): Entry[] {
  return treeOf(listed).flatMap(({ name: path, ...entry }) => {
    const name = runbookPath.exec(path)?.[1]
    return name === undefined ? [] : [{ name, ...entry }]
  })
}

/** Maximum number of policy files to read: enough to report that there are several. */
const maxPolicies = 3

function policiesOf(listed: string): Entry[] {
  return treeOf(listed)
    .filter(({ name }) => policyPath.test(name))
    .slice(0, maxPolicies)
}

/** Parses `ls-tree -l -z`, whose fields are mode, type, object, size, tab and path. */
function treeOf(listed: string): Entry[] {
  return listed.split('\0').flatMap((line) => {
    const [, mode = '', object = '', size = '', name] = /^(\d{6}) \w+ ([0-9a-f]+) +(\d+|-)\t(.*)$/s.exec(line) ?? []
    return name === undefined ? [] : [{ name, mode, object, bytes: Number(size) || 0 }]
  })
}

async function readPolicyEntry(entry: Entry, commit: string, read: () => Promise<Buffer>): Promise<FoundPolicy> {
  const file = { path: entry.name, commit }
  const problem = entry.mode === '120000' ? faults.link : entry.mode.startsWith('100') ? null : faults.notAFile
  if (problem) return { ...file, problem }
  if (entry.bytes < maxPolicyFileBytes) return { ...file, bytes: await read() }
  return {
    ...file,
    problem: {
      why: `it has ${entry.bytes} bytes, and at most 1048576 are allowed`,
      remedy: 'name resources by kind and label',
    },
  }
}

/**
 * Runs git without the settings of the machine. Kills git if it takes too long or uses too much
 * space.
 */
async function git(repository: Repository, words: readonly string[], watched?: string): Promise<Buffer> {
  const args = ['--no-pager', '--no-replace-objects', ...settings.flatMap((setting) => ['-c', setting]), ...words]
  const child = spawn('git', args, {
    env: environmentFor(repository),
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
    detached: true,
  })
  const [out, err] = [keepOutput(), keepOutput()]
  child.stdout.on('data', out.take)
  child.stderr.on('data', err.take)
  let ended: string | null = null
  const end = (why: string) => {
    ended ??= why
    // Kills the children of git too: one of them reads the response of the server, which may be
    // endless.
    if (child.pid !== undefined) killGroup(child.pid)
  }
  const timer = setTimeout(() => end(`git took longer than ${withinMs / 1000} s`), withinMs)
  const sizes = setInterval(async () => {
    if (out.isFull()) end('git printed more than Nightshift reads')
    if (watched && (await bytesBelow(watched)) > maxCloneBytes)
      end(`the repository is larger than ${maxCloneBytes >> 20} MiB`)
  }, 100)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    if (ended === null && code === 0) return out.bytes()
    throw new RepositoryError(ended ?? whyFailed(err.bytes().toString('utf8'), repository))
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
    throw new RepositoryError('git is not installed on the host of the API: install it, or use KNOWLEDGE_PATH')
  } finally {
    clearTimeout(timer)
    clearInterval(sizes)
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Ignores the error, because the process has already exited.
  }
}

function environmentFor({ url, token }: Repository): NodeJS.ProcessEnv {
  const { PATH, HOME, SSH_AUTH_SOCK } = readVariables('PATH', 'HOME', 'SSH_AUTH_SOCK')
  return {
    PATH: PATH ?? '/usr/bin:/bin',
    // Tells ssh where its key and known hosts are. Git itself reads no file in this home folder.
    HOME: HOME ?? '/nonexistent',
    ...(SSH_AUTH_SOCK && { SSH_AUTH_SOCK }),
    LC_ALL: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ForwardAgent=no',
    // Passes the token in the environment, because every process list shows arguments.
    ...(token !== null && {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'http.extraHeader',
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from(`git:${token}`).toString('base64')}`,
    }),
  }
}

function keepOutput() {
  const parts: Buffer[] = []
  let length = 0
  const take = (part: Buffer) => {
    if (length < maxOutputBytes) parts.push(part)
    length += part.length
  }
  return { take, isFull: () => length > maxOutputBytes, bytes: () => Buffer.concat(parts) }
}

async function bytesBelow(directory: string): Promise<number> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).slice(0, 10_000)
    const sizes = await Promise.all(files.map(({ parentPath, name }) => stat(join(parentPath, name)).catch(() => null)))
    return sizes.reduce((sum, looked) => sum + (looked?.size ?? 0), 0)
  } catch {
    return 0
  }
}

function whyFailed(text: string, { token }: Repository): string {
  const line =
    text.split('\n').find((each) => /^(?:fatal|error|remote|ssh|host key|permission)/i.test(each)) ??
    'git ended with an error'
  return redact(token ? line.replaceAll(token, '[redacted]') : line).slice(0, 300)
}
