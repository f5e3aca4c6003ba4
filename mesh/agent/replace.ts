import { randomBytes } from 'node:crypto'
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises'
import { errnoOf, Refused } from './refused.ts'
import { type Held, within } from './walk.ts'

/**
 * Puts a file in place at once: a temporary file beside it, on disk, then renamed, then the directory on disk. Whoever reads
 * meanwhile sees the old content or the new. `former` is what was there when the change was made up: when it is not there any more,
 * nothing is changed (`conflict`); null makes a new file and never replaces one. Access lists and extended attributes are not kept.
 */
export async function replace(
  directory: Held,
  name: string,
  bytes: Buffer,
  mode: number,
  former: BigIntStats | null,
): Promise<void> {
  const temporary = within(directory.handle, `.nightshift-${randomBytes(8).toString('hex')}`)
  const target = within(directory.handle, name)
  try {
    await writeOut(temporary, bytes, mode, former)
    if (former) {
      await assertSame(target, former, directory, name)
      await rename(temporary, target)
    } else {
      await link(temporary, target)
      await unlink(temporary)
    }
  } catch (error) {
    await unlink(temporary).catch(() => {})
    if (errnoOf(error) === 'EEXIST') throw changed(directory, name)
    throw error
  }
  await syncDirectory(directory.handle)
}

async function writeOut(temporary: string, bytes: Buffer, mode: number, former: BigIntStats | null): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    await file.writeFile(bytes)
    const own = await file.stat({ bigint: true })
    if (former && (own.uid !== former.uid || own.gid !== former.gid))
      await giveTo(file, Number(former.uid), Number(former.gid))
    await file.chmod(mode)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function giveTo(file: FileHandle, uid: number, gid: number): Promise<void> {
  try {
    await file.chown(uid, gid)
  } catch {
    throw new Refused('failed', `the file belongs to ${uid}:${gid}, and the agent may not give it back to them`)
  }
}

async function assertSame(target: string, former: BigIntStats, directory: Held, name: string): Promise<void> {
  const now = await lstat(target, { bigint: true }).catch(() => null)
  const same =
    now &&
    now.ino === former.ino &&
    now.dev === former.dev &&
    now.size === former.size &&
    now.mtimeNs === former.mtimeNs &&
    now.ctimeNs === former.ctimeNs
  if (!same) throw changed(directory, name)
}

const changed = (directory: Held, name: string) =>
  new Refused('conflict', `${directory.path === '/' ? '' : directory.path}/${name} was changed meanwhile`)

async function syncDirectory(directory: FileHandle): Promise<void> {
  const opened = await open(`/proc/self/fd/${directory.fd}`, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}
