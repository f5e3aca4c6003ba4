import { readFile, statfs } from 'node:fs/promises'
import { stripText } from '../../safety/strip.ts'

/** A mounted file system that can fill up. Percentages as `df` counts them, without what is kept for root. */
export type FileSystem = {
  mount: string
  type: string
  device: string
  read_only: boolean
  size_bytes: number
  used_bytes: number
  available_bytes: number
  used_percent: number
  /** Null where the file system has no fixed number of them, as btrfs. */
  inodes_used_percent: number | null
  inodes_free: number | null
}

export type FileSystems = {
  /** The fullest first. */
  file_systems: FileSystem[]
  /** Those that were not asked, with the reason. */
  not_asked: { mount: string; type: string; why: string }[]
}

type Mount = { id: string; mount: string; type: string; device: string; isReadOnly: boolean }

/** Asking one whose server is away hangs in the kernel, and would take a thread of the agent with it. */
const remote = /^(?:nfs|cifs|smb|9p|afs|ceph|lustre|gluster|glusterfs|beegfs|ncpfs|fuse\.(?!fuse-overlayfs$|lxcfs$))/
/** Images are always full. The layers of a container lie on a file system that is listed itself. */
const neverFills = /^(?:squashfs|iso9660|erofs|cramfs|udf|overlay|fuse\.fuse-overlayfs|nsfs|autofs)$/
const mostMounts = 60

export async function readFileSystems(signal: AbortSignal): Promise<FileSystems> {
  const found: FileSystem[] = []
  const notAsked: FileSystems['not_asked'] = []
  for (const each of mountsIn(await readFile('/proc/self/mountinfo', 'utf8'))) {
    signal.throwIfAborted()
    const shown = { mount: stripText(each.mount, { keepNewlines: false }), type: each.type }
    if (remote.test(each.type)) {
      notAsked.push({ ...shown, why: 'it is on another machine' })
      continue
    }
    try {
      const space = await spaceOf(each.mount)
      // Those of the kernel (proc, sysfs, cgroup) have no space at all.
      if (space === null) continue
      const device = stripText(each.device, { keepNewlines: false })
      found.push({ ...shown, device, read_only: each.isReadOnly, ...space })
    } catch {
      notAsked.push({ ...shown, why: 'the agent may not look at it' })
    }
  }
  const fullness = (one: FileSystem) => Math.max(one.used_percent, one.inodes_used_percent ?? 0)
  found.sort((a, b) => fullness(b) - fullness(a) || b.size_bytes - a.size_bytes)
  return { file_systems: found.slice(0, mostMounts), not_asked: notAsked.slice(0, mostMounts) }
}

/** One per device, at its shortest mount: bind mounts show the same space again. */
export function mountsIn(mountinfo: string): Mount[] {
  const byDevice = new Map<string, Mount>()
  for (const line of mountinfo.split('\n')) {
    // "36 35 98:0 /root /mount options optional… - type device options"
    const [before = '', after = ''] = line.split(' - ')
    const [, , id, , place, options = ''] = before.split(' ')
    const [type, device = '', more = ''] = after.split(' ')
    if (id === undefined || place === undefined || type === undefined) continue
    const mount = unquote(place)
    if (neverFills.test(type) && mount !== '/') continue
    const isReadOnly = [...options.split(','), ...more.split(',')].includes('ro')
    const known = byDevice.get(id)
    if (!known || mount.length < known.mount.length)
      byDevice.set(id, { id, mount, type, device: unquote(device), isReadOnly })
  }
  // Of two that are mounted at one place only the later one can be reached.
  return [...new Map([...byDevice.values()].map((each) => [each.mount, each])).values()]
}

/** The kernel writes spaces, tabs, newlines and backslashes in octal. */
const unquote = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

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

/** Rounded up, so that 100 means that nothing is left or nearly so. */
const percent = (part: number, whole: number) => (whole <= 0 ? 100 : Math.ceil((part / whole) * 100))
