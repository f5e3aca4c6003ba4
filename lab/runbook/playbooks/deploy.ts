import { posix } from 'node:path'
import type { Conversation, RunbookStep } from '../conversation.ts'
import {
  call,
  claimAbsent,
  done,
  escalate,
  type Facts,
  lastVerification,
  nothingWrong,
  number,
  type OperatorTurn,
  object,
  quoted,
  quotedOf,
  type RunbookQuote,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
  words,
} from '../facts.ts'

/**
 * Restores a broken file. Reads the file and its former version, asks to write the former version
 * back, asks to commit it, and checks after each write call.
 */
export function undoDeploy(conversation: Conversation): OperatorTurn {
  const { steps } = conversation
  const node = subject(conversation, 'node')
  const file = conversation.context!.alerts.map(({ labels }) => labels.file).find(Boolean)
  if (!node || !file) return escalate(conversation, 'The alert names no node, or no file on it.')
  if (done(steps, 'get_node', node).length === 0)
    return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }
  return takeBack({ conversation, node, file, directory: posix.dirname(file), name: posix.basename(file), cause: null })
}

/** The reason why a file with valid content should be restored. */
type Cause = { node: string; file: string; why: string }

/** Undoes a commit whose content is valid but harmful. */
export function undoCommit(conversation: Conversation, cause: Cause): OperatorTurn {
  const { node, file } = cause
  return takeBack({ conversation, node, file, directory: posix.dirname(file), name: posix.basename(file), cause })
}

type Deploy = {
  conversation: Conversation
  node: string
  file: string
  directory: string
  name: string
  cause: Cause | null
}

function takeBack(deploy: Deploy): OperatorTurn {
  const { conversation, node } = deploy
  const written = done(conversation.steps, 'fs_write', node).at(-1)
  return written ? commit(deploy, written) : writeBack(deploy)
}

const git = ({ node, directory }: Deploy, ...words: string[]) =>
  call('exec', { on: node, argv: ['git', '-C', directory, ...words] })
const read = ({ node, file }: Deploy) => call('fs_read', { on: node, path: file })

/** Reads the file's present and former content, and asks to write the former content back. */
function writeBack(deploy: Deploy): OperatorTurn {
  const { conversation, node, file, name, cause } = deploy
  const looked = done(conversation.steps, 'fs_read', node)
  const shown = done(conversation.steps, 'exec', node)
  const missing = [
    ...(looked.length === 0 ? [read(deploy)] : []),
    ...(shown.length === 0 ? [git(deploy, 'show', `HEAD~1:${name}`)] : []),
  ]
  if (missing.length > 0) return { say: `I read ${name} as it is, and as it was one commit before.`, calls: missing }
  const now = object(looked.at(-1)!.result.data)
  if (!cause && isJson(text(now, 'content')))
    return nothingWrong(conversation, `${file} is JSON`, contentOf(looked.at(-1)!))
  const before = object(shown.at(-1)!.result.data)
  const content = text(before, 'stdout')
  if (before.exit_code !== 0 || content === null || !isJson(content))
    return escalate(conversation, `${file} is not valid JSON, and neither was it one commit before.`)
  const sha256 = text(now, 'sha256')
  return {
    say: `${cause?.why ?? `${name} is not valid JSON since the last commit`}; I ask to write back what ${name} was before.`,
    calls: [
      call('fs_write', {
        on: node,
        path: file,
        content,
        ...(sha256 && { if_sha256: sha256 }),
        reason: `${cause?.why ?? `The last commit broke ${name}`}; this is the version from one commit before.`,
      }),
    ],
  }
}

/** Checks that the written file is valid, and asks to commit it. */
function commit(deploy: Deploy, written: RunbookStep): OperatorTurn {
  const { conversation, node, file, name, directory, cause } = deploy
  const { steps } = conversation
  const sinceWrite = stepsAfter(steps, 'fs_write')
  const [seen] = done(sinceWrite, 'fs_read', node).slice(-1)
  if (!seen)
    return { say: `I check whether ${name} is ${cause ? 'as it was' : 'valid JSON again'}.`, calls: [read(deploy)] }
  if (!isJson(text(object(seen.result.data), 'content')) || lastVerification([written, ...sinceWrite]) === 'not_held')
    return escalate(conversation, `${file} was written, and is still not valid JSON.`)

  const committed = done(steps, 'git_commit', node).at(-1)
  if (!committed) {
    return {
      say: `${name} is ${cause ? 'as it was' : 'valid JSON again'}; I ask to commit it, so that the next deploy starts from this version.`,
      calls: [
        call('git_commit', {
          on: node,
          path: directory,
          files: [name],
          message: `Take back ${cause ? name : `a ${name} that is not valid JSON`}`,
          reason: `${name} has the version from one commit before; the checkout should record that.`,
        }),
      ],
    }
  }
  const sinceCommit = stepsAfter(steps, 'git_commit')
  const [status] = done(sinceCommit, 'exec', node).slice(-1)
  if (!status) return { say: 'I check whether the checkout is clean.', calls: [git(deploy, 'status', '--porcelain')] }
  const { exit_code, stdout } = object(status.result.data)
  if (exit_code !== 0 || stdout !== '' || lastVerification([committed, ...sinceCommit]) === 'not_held')
    return escalate(conversation, `${name} was committed on ${node}, and the checkout is not clean.`)
  return resolve(
    conversation,
    'repaired',
    `${cause?.why ?? `A commit broke ${name} on ${node}`}; its version before was written back and committed.`,
    [
      {
        kind: 'was',
        text: cause ? `${name} on ${node} was as the last commit has it` : `${name} was no JSON on ${node}`,
        quotes: done(steps, 'fs_read', node).slice(0, 1).flatMap(contentOf),
      },
      {
        kind: 'did',
        text: 'its version of one commit before was written with approval',
        quotes: quoted(written, 'detail'),
      },
      { kind: 'was', text: `after that ${name} was ${cause ? 'as before' : 'JSON'}`, quotes: contentOf(seen) },
      { kind: 'did', text: 'it was committed with approval', quotes: quoted(committed, 'detail') },
      claimAbsent('nothing in the checkout is left to commit', [status], ''),
    ],
  )
}

/** Quotes the beginning of the file that was read, as evidence. */
function contentOf(step: RunbookStep): RunbookQuote[] {
  const content = text(object(step.result?.data), 'content') ?? ''
  return words(step, content.trim().split('\n')[0] ?? '')
}

function isJson(content: string | null): boolean {
  try {
    JSON.parse(content ?? '')
    return true
  } catch {
    return false
  }
}

/**
 * The endings of rotated logs: `trace.log.3`, `trace.log.3.gz`, `trace.log-20261120`. The log in
 * use has no such ending.
 */
const rotated = /(?:\.\d+|-\d{8})(?:\.(?:gz|xz|zst))?$/
/** The fraction of the quota that may be in use after the removal. */
const enoughFraction = 0.6
/** The most files that one call removes. */
const atMost = 100

type FullLog = { node: string; directory: string; used: number; quota: number; figures: string }

/**
 * Handles a log directory that no clean-up includes: lists it, asks to remove its largest rotated
 * files, and lists it again. Null if the removal of all rotated files would not free enough.
 */
export function clearLogs(conversation: Conversation, full: FullLog): OperatorTurn | null {
  const { steps } = conversation
  const { node, directory, figures } = full
  const look = call('fs_list', { on: node, path: directory })
  const removed = done(steps, 'exec', node).at(-1)
  const seen = done(steps, 'fs_list', node)
  if (removed) return afterwards(conversation, full, (removed.args.argv as string[]).slice(2))
  if (seen.length === 0) return { say: `${figures}. A converge clears none of this; I list the logs.`, calls: [look] }
  const files = oldLogs(rows(object(seen.at(-1)!.result.data).entries))
  const chosen = enough(files, full.used - enoughFraction * full.quota)
  if (chosen === null) return null
  const bytes = chosen.reduce((sum, file) => sum + file.size, 0)
  return {
    say: `${files.length} rotated logs fill ${directory}; I ask to remove ${chosen.length} of them.`,
    calls: [
      call('exec', {
        on: node,
        argv: ['rm', '--', ...chosen.map(({ name }) => posix.join(directory, name))],
        reason: `The disk of ${node} is full. These ${chosen.length} rotated logs hold ${bytes} bytes, and no process writes to them.`,
      }),
    ],
  }
}

function afterwards(conversation: Conversation, { node, directory }: FullLog, names: string[]): OperatorTurn {
  const { steps } = conversation
  const since = stepsAfter(steps, 'exec')
  const [listed] = done(since, 'fs_list', node).slice(-1)
  const [read] = done(since, 'get_node', node).slice(-1)
  const missing = [
    ...(listed ? [] : [call('fs_list', { on: node, path: directory })]),
    ...(read ? [] : [call('get_node', { id: node })]),
  ]
  if (!listed || !read) return { say: 'I check which logs are left, and whether the disk has room.', calls: missing }
  const left = rows(object(listed.result.data).entries).map((entry) => posix.join(directory, text(entry, 'name') ?? ''))
  const still = names.filter((name) => left.includes(name))
  const status = text(object(read.result.data), 'status')
  if (still.length > 0 || status !== 'nominal')
    return escalate(
      conversation,
      `${names.length} rotated logs of ${node} were to be removed; ${still.length} are still there, and the node is ${status}.`,
    )
  const before = done(steps, 'fs_list', node).slice(0, 1)
  return resolve(
    conversation,
    'repaired',
    `Rotated logs in ${directory} filled the disk of ${node}; ${names.length} were removed, and what is being written stayed.`,
    [
      {
        kind: 'was',
        text: `rotated logs filled ${directory}`,
        quotes: before.flatMap((step) =>
          rows(object(step.result.data).entries)
            .slice(0, 3)
            .flatMap((entry) => quotedOf(step, entry, 'name', 'size')),
        ),
      },
      {
        kind: 'did',
        text: `${posix.basename(names[0] ?? '')} and others like it were removed with approval`,
        quotes: done(steps, 'exec', node)
          .slice(-1)
          .flatMap((step) => quoted(step, 'cmd_executed', 'detail')),
      },
      claimAbsent(`${posix.basename(names[0] ?? '')} is not there any more`, [listed], posix.basename(names[0] ?? '')),
      { kind: 'is', text: `${node} is nominal`, quotes: quoted(read, 'status') },
    ],
  )
}

type OldLog = { name: string; size: number; mtime: string }

/** Lists the rotated logs, the largest first. Of logs with equal size the oldest comes first. */
function oldLogs(entries: Facts[]): OldLog[] {
  return entries
    .filter((entry) => entry.type === 'file' && rotated.test(text(entry, 'name') ?? ''))
    .map((entry) => ({
      name: text(entry, 'name')!,
      size: number(entry, 'size') ?? 0,
      mtime: text(entry, 'mtime') ?? '',
    }))
    .sort((a, b) => b.size - a.size || a.mtime.localeCompare(b.mtime))
}

/** Returns the fewest files that free this many bytes. Null if all files do not. */
function enough(files: OldLog[], bytes: number): OldLog[] | null {
  const chosen: OldLog[] = []
  let freed = 0
  for (const file of files.slice(0, atMost)) {
    chosen.push(file)
    freed += file.size
    if (freed >= bytes) return chosen
  }
  return null
}
