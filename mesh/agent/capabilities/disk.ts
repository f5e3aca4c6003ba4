import { readdir, readFile, readlink, stat, statfs } from 'node:fs/promises'
import type { z } from 'zod'
import { stripText } from '../../../safety/redact.ts'
import { diskUsageArgs } from '../../specs/fs.ts'
import { type DeviceCapability, errnoOf, toOutcome } from '../capability.ts'
import { findLargest } from '../largest.ts'
import { ownPaths, requirePlace, weighRead } from '../manifest.ts'
import { readMounts } from '../mounts.ts'
import { enclosureOf, standingOf } from '../process-facts.ts'
import { pids, processOf } from '../programs.ts'
import { withEntryAt } from '../walk.ts'
import { missingProcesses } from './proc.ts'

/** A deleted file, whose space is freed only when its processes close it. */
type DeletedFile = {
  path: string
  bytes: number
  processes: { pid: number; start_time: string; name: string; fd: number; container?: string }[]
}

export type DeletedFiles = {
  files: DeletedFile[]
  bytes: number
  /**
   * Number of processes whose open files the agent cannot see. Without root these are processes of
   * other users.
   */
  processes_unseen: number
  partial: boolean
}

const shown = 20
const maxMs = 4_000
const ending = ' (deleted)'

/**
 * Lists deleted files that are still open, the largest first. Leaves out files that are only in
 * memory (memfd, shared memory).
 */
async function findDeletedFiles(signal: AbortSignal, isOwn: (path: string) => boolean): Promise<DeletedFiles> {
  const until = performance.now() + maxMs
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
      // Counts a process as unseen unless it ended in the meantime.
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
    // Skips an existing file, because a file may be named "x (deleted)" and still have this name.
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

/**
 * A mounted file system that can become full. Percentages are as in `df`, without root's reserve.
 */
export type FileSystem = {
  mount: string
  type: string
  device: string
  read_only: boolean
  size_bytes: number
  used_bytes: number
  available_bytes: number
  used_percent: number
  /** Null if the file system has no fixed number of inodes, as btrfs. */
  inodes_used_percent: number | null
  inodes_free: number | null
}

type FileSystems = {
  /** The file systems that are not nearly empty, the fullest first. */
  file_systems: FileSystem[]
  /** Mount points of file systems with at most one percent used. */
  nearly_empty: string[]
  /** File systems that were not read, each with the reason. */
  not_asked: { mount: string; type: string; why: string }[]
}

type FileSystemMount = { id: string; mount: string; type: string; device: string; isReadOnly: boolean }

/**
 * Types of remote file systems. They are not read, because an absent server blocks a thread of the
 * agent in the kernel.
 */
const remote = /^(?:nfs|cifs|smb|9p|afs|ceph|lustre|gluster|glusterfs|beegfs|ncpfs|fuse\.(?!fuse-overlayfs$|lxcfs$))/
/**
 * Types of file systems that never fill up: images are always full, and the layers of a container
 * are on a listed file system.
 */
const neverFills = /^(?:squashfs|iso9660|erofs|cramfs|udf|overlay|fuse\.fuse-overlayfs|nsfs|autofs)$/
const maxMounts = 60

async function readFileSystems(signal: AbortSignal): Promise<FileSystems> {
  const found: FileSystem[] = []
  const notAsked: FileSystems['not_asked'] = []
  for (const each of mountsIn(await readFile('/proc/self/mountinfo', 'utf8'))) {
    signal.throwIfAborted()
    const shown = { mount: stripText(each.mount, { keepNewlines: false }), type: each.type }
    if (remote.test(each.type)) {
      notAsked.push({ ...shown, why: 'the file system is on another machine' })
      continue
    }
    try {
      const space = await spaceOf(each.mount)
      // Skips kernel file systems (proc, sysfs, cgroup), which have no space at all.
      if (space === null) continue
      const device = stripText(each.device, { keepNewlines: false })
      found.push({ ...shown, device, read_only: each.isReadOnly, ...space })
    } catch {
      notAsked.push({ ...shown, why: 'the agent may not read the file system' })
    }
  }
  const fullness = (one: FileSystem) => Math.max(one.used_percent, one.inodes_used_percent ?? 0)
  found.sort((a, b) => fullness(b) - fullness(a) || b.size_bytes - a.size_bytes)
  // Lists the root file system in every result, even if it is nearly empty.
  const isEmpty = (one: FileSystem) => fullness(one) <= 1 && one.mount !== '/'
  return {
    file_systems: found.filter((one) => !isEmpty(one)).slice(0, maxMounts),
    nearly_empty: found
      .filter(isEmpty)
      .map(({ mount }) => mount)
      .slice(0, maxMounts),
    not_asked: notAsked.slice(0, maxMounts),
  }
}

/**
 * Lists one mount per device, the one with the shortest path. Bind mounts show the space of a
 * device again, and so do subvolumes of one disk, although the kernel numbers them separately.
 */
export function mountsIn(mountinfo: string): FileSystemMount[] {
  const byDevice = new Map<string, FileSystemMount>()
  for (const { device: id, target: mount, type, source, options, superOptions } of readMounts(mountinfo)) {
    if (neverFills.test(type) && mount !== '/') continue
    const isReadOnly = [...options, ...superOptions].includes('ro')
    const space = source.startsWith('/dev/') ? source : id
    const known = byDevice.get(space)
    if (!known || mount.length < known.mount.length)
      byDevice.set(space, { id, mount, type, device: source, isReadOnly })
  }
  // Keeps the later of two mounts on one path, because only the later mount is reachable.
  return [...new Map([...byDevice.values()].map((each) => [each.mount, each])).values()]
}

async function spaceOf(mount: string) {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(mount)
  if (blocks === 0) return null
  const used = blocks - bfree
  return {
    size_bytes: blocks * bsize,
    used_bytes: used * bsize,
    available_bytes: bavail * bsize,
    used_percent: percent(used, used + bavail),
    inodes_used_percent: files > 0 ? percent(files - ffree, files) : null,
    inodes_free: files > 0 ? ffree : null,
  }
}

/** Rounds up, so that 100 means that nearly no space is left. */
const percent = (part: number, whole: number) => (whole <= 0 ? 100 : Math.ceil((part / whole) * 100))

/**
 * Reports the disks: `{ file_systems, nearly_empty, not_asked, deleted_but_open, below }`. `below`
 * is null if no path is given. A path is opened by the rules of `fs.list`.
 */
export const diskUsage: DeviceCapability<z.infer<typeof diskUsageArgs>> = {
  capability: 'disk.usage',
  args: diskUsageArgs,
  missingPrerequisite: missingProcesses,
  weigh: ({ path }, manifest) =>
    path === undefined ? { effect: 'read', reason: 'only reads', command: null } : weighRead(path, manifest),
  run: ({ path }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, async () => {
      const isOwn = ownPaths({ state, hidden })
      // Checks the path first, so that a refused path causes no other work.
      const below =
        path === undefined
          ? null
          : await withEntryAt(requirePlace(path, manifest, { state, hidden }, 'look'), (held) =>
              findLargest(held, { signal, isOwn }),
            )
      const deleted = await findDeletedFiles(signal, isOwn)
      const result = { ...(await readFileSystems(signal)), deleted_but_open: deleted, below }
      return { ok: true, result, truncated: deleted.partial || (below !== null && below.partial !== null) }
    }),
}

export const diskCapabilities = [diskUsage]
