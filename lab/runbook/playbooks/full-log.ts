import { posix } from 'node:path'
import type { Conversation } from '../conversation.ts'
import {
  absent,
  after,
  call,
  type Decision,
  done,
  escalate,
  type Facts,
  number,
  object,
  quoted,
  quotedOf,
  resolve,
  rows,
  text,
} from '../facts.ts'

/** As log rotation names what it put aside: `trace.log.3`, `trace.log.3.gz`, `trace.log-20261120`. What is being written has none of these. */
const rotated = /(?:\.\d+|-\d{8})(?:\.(?:gz|xz|zst))?$/
/** So much of the quota may be in use afterwards. */
const enoughFraction = 0.6
/** What one call takes. */
const atMost = 100

export type FullLog = { node: string; directory: string; used: number; quota: number; figures: string }

/**
 * A directory of logs that no clean-up knows: look what is in it, ask to remove the largest of those that rotation put aside, and look
 * again. Null where all of them together would not be enough.
 */
export function clearLogs(conversation: Conversation, full: FullLog): Decision | null {
  const { steps } = conversation
  const { node, directory, figures } = full
  const look = call('fs_list', { on: node, path: directory })
  const removed = done(steps, 'exec', node).at(-1)
  const seen = done(steps, 'fs_list', node)
  if (removed) return afterwards(conversation, full, (removed.args.argv as string[]).slice(2))
  if (seen.length === 0) return { say: `${figures}. A converge clears none of it; I look at the logs.`, calls: [look] }
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
        reason: `The disk of ${node} is full. These ${chosen.length} logs were rotated away and hold ${bytes} bytes; none is being written.`,
      }),
    ],
  }
}

function afterwards(conversation: Conversation, { node, directory }: FullLog, names: string[]): Decision {
  const { steps } = conversation
  const since = after(steps, 'exec')
  const [listed] = done(since, 'fs_list', node).slice(-1)
  const [read] = done(since, 'get_node', node).slice(-1)
  const missing = [
    ...(listed ? [] : [call('fs_list', { on: node, path: directory })]),
    ...(read ? [] : [call('get_node', { id: node })]),
  ]
  if (!listed || !read) return { say: 'I look what is left, and whether the disk has room.', calls: missing }
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
      absent(`${posix.basename(names[0] ?? '')} is not there any more`, [listed], posix.basename(names[0] ?? '')),
      { kind: 'is', text: `${node} is nominal`, quotes: quoted(read, 'status') },
    ],
  )
}

type OldLog = { name: string; size: number; mtime: string }

/** The largest first, and of those that are as large the oldest. */
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

/** As few as free so many bytes; null where all together do not. */
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
