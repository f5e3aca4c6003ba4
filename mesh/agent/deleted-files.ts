import { readdir, readlink, stat } from 'node:fs/promises'
import { stripText } from '../../safety/strip.ts'
import { errnoOf } from './outcome.ts'
import { enclosureOf, standingOf } from './process-facts.ts'
import { pids, processOf } from './programs.ts'

/** A file without a name whose space comes back only when its processes close it. */
export type DeletedFile = {
  path: string
  bytes: number
  processes: { pid: number; start_time: string; name: string; fd: number; container?: string }[]
}

export type DeletedFiles = {
  files: DeletedFile[]
  bytes: number
  /** Of processes of other users an agent without root's rights sees no files. */
  processes_unseen: number
  partial: boolean
}

const shown = 20
const longestMs = 4_000
const ending = ' (deleted)'

/** The largest first. What is in memory alone (memfd, shared memory) takes no disk. */
export async function findDeletedFiles(signal: AbortSignal, isOwn: (path: string) => boolean): Promise<DeletedFiles> {
  const until = performance.now() + longestMs
  const found = new Map<string, DeletedFile>()
  let unseen = 0
  let partial = false
  for (const pid of await pids()) {
    signal.throwIfAborted()
    if (performance.now() > until) {
      partial = true
      break
    }
    try {
      await addDeleted(pid, found, isOwn)
    } catch (error) {
      // One that has ended meanwhile was not kept from us.
      if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'EPERM') unseen += 1
    }
  }
  const files = [...found.values()].sort((a, b) => b.bytes - a.bytes)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return { files: files.slice(0, shown), bytes, processes_unseen: unseen, partial }
}

async function addDeleted(pid: number, found: Map<string, DeletedFile>, isOwn: (path: string) => boolean) {
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
    if (!target.endsWith(ending) || /^\/(?:memfd:|dev\/|SYSV|anon_|\[)/.test(target)) continue
    const held = await stat(`/proc/${pid}/fd/${fd}`).catch(() => null)
    const path = target.slice(0, -ending.length)
    // A file may be called "x (deleted)" and still have that name.
    if (!held?.isFile() || held.nlink > 0 || held.blocks === 0 || isOwn(path)) continue
    const process = await processOf(pid)
    if (!process) return
    const key = `${held.dev}:${held.ino}`
    const file = found.get(key) ?? { path: plain(path), bytes: held.blocks * 512, processes: [] }
    found.set(key, file)
    if (file.processes.length >= 5 || file.processes.some((each) => each.pid === pid)) continue
    const container = enclosureOf(standingOf(pid)?.cgroups ?? [])
    const { start_time, name } = process
    file.processes.push({ pid, start_time, name: plain(name), fd: Number(fd), ...(container && { container }) })
  }
}

const plain = (text: string) => stripText(text, { keepNewlines: false })
