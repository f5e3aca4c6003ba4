import type { BigIntStats, Dirent } from 'node:fs'
import { type FileHandle, lstat, opendir, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { sha256 } from '../../../domain/digest.ts'
import { fsListArgs, fsReadArgs, fsStatArgs, fsWriteArgs } from '../../specs/fs.ts'
import {
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  errnoOf,
  runInTurn,
  toOutcome,
} from '../capability.ts'
import {
  isSecret,
  missingProc,
  missingWritableRoot,
  requirePlace,
  weighLook,
  weighRead,
  weighWrite,
} from '../manifest.ts'
import { groupNames, userNames } from '../process-facts.ts'
import { inThrowAway, runChecks, withheld } from '../rehearsal.ts'
import { bytesOf, keepVersion, readWhole, replace, unifiedDiff } from '../replace.ts'
import {
  assertDirectory,
  digestOf,
  kindOf,
  modeOf,
  type OpenEntry,
  openContent,
  openEntry,
  readPart,
  textOf,
  wholeBytes,
  withEntryAt,
  within,
  withParentOf,
} from '../walk.ts'

type WriteArgs = z.infer<typeof fsWriteArgs>

/**
 * Writes a file atomically: a reader sees either the old or the new content. An append also
 * replaces the file, so a program that has the file open continues with the old file. Keeps owner
 * and mode, and stores the earlier content on the device (`previous_version`). The dry run writes a
 * copy, and returns `{ diff, checks, would_change }`.
 */
export const fsWrite: DeviceCapability<WriteArgs> = {
  capability: 'fs.write',
  args: fsWriteArgs,
  missingPrerequisite: missingWritableRoot,
  weigh: ({ path }, manifest) => weighWrite(path, manifest),
  run: (args, context) => inPlace(args, context, (change) => write(change, context)),
  rehearse: (args, context) => inPlace(args, context, (change) => rehearse(change, context)),
}

/** The change of a file, which the write and its dry run share. */
type Change = {
  directory: OpenEntry
  name: string
  path: string
  former: { stat: OpenEntry['stat']; bytes: Buffer } | null
  bytes: Buffer
  mode: number
}

function inPlace(
  args: WriteArgs,
  context: CapabilityContext,
  act: (change: Change) => Promise<CapabilityOutcome>,
): Promise<CapabilityOutcome> {
  return toOutcome(context.signal, async () => {
    const place = requirePlace(args.path, context.manifest, context, 'change')
    const given = bytesOf(args.content, args.encoding)
    return runInTurn(place.path, () =>
      withParentOf(place, async (directory, name) => {
        const former = await formerOf(directory, name, context.signal)
        if (args.if_sha256 !== undefined && (!former || sha256(former.bytes) !== args.if_sha256))
          throw new CapabilityError('conflict', `the content of ${place.path} does not match if_sha256`)
        const bytes = args.append && former ? Buffer.concat([former.bytes, given]) : given
        if (bytes.length > wholeBytes) throw new CapabilityError('failed', `${place.path} would be larger than 16 MiB`)
        const mode = args.mode ? Number.parseInt(args.mode, 8) : former ? Number(former.stat.mode & 0o777n) : 0o644
        return act({ directory, name, path: place.path, former, bytes, mode })
      }),
    )
  })
}

async function formerOf(directory: OpenEntry, name: string, signal: AbortSignal): Promise<Change['former']> {
  const held = await openEntry(directory, name)
  if (!held) return null
  try {
    const { stat, path } = held
    if (stat.isFile() && stat.nlink > 1n)
      throw new CapabilityError('outside_roots', `${path} has another name (hard link), which may be outside the roots`)
    if ((stat.mode & 0o7000n) !== 0n && stat.isFile())
      throw new CapabilityError('failed', `${path} is setuid, setgid or sticky: the agent does not write such files`)
    const file = await openContent(held)
    try {
      return { stat, bytes: await readWhole(file, path, signal) }
    } finally {
      await file.close()
    }
  } finally {
    await held.handle.close()
  }
}

async function write(change: Change, { state, signal }: CapabilityContext): Promise<CapabilityOutcome> {
  const { directory, name, path, former, bytes, mode } = change
  const version = former ? await keepVersion(state, path, former.bytes) : null
  signal.throwIfAborted()
  await replace(directory, name, bytes, mode, former?.stat ?? null)
  const result = {
    path,
    created: former === null,
    size: bytes.length,
    sha256: sha256(bytes),
    mode: `0${mode.toString(8).padStart(3, '0')}`,
    previous_sha256: former ? sha256(former.bytes) : null,
    previous_version: version,
    previous_mode: former ? modeOf(former.stat) : null,
  }
  return { ok: true, result, truncated: false }
}

function rehearse({ name, path, former, bytes, mode }: Change, context: CapabilityContext): Promise<CapabilityOutcome> {
  return inThrowAway(context.state, async (directory) => {
    const copy = join(directory, name)
    await writeFile(copy, bytes, { mode: 0o600, flag: 'wx' })
    const secret = isSecret(path)
    const shown = secret ? null : await unifiedDiff(path, former?.bytes ?? null, bytes)
    const checks = await runChecks([{ path, copy }], directory, context)
    const kept = former?.bytes.equals(bytes) && Number(former.stat.mode & 0o777n) === mode
    const result = {
      diff: shown?.diff ?? withheld,
      checks,
      would_change: !kept,
      path,
      mode: { before: former ? modeOf(former.stat) : null, after: `0${mode.toString(8).padStart(3, '0')}` },
      sha256: secret ? null : sha256(bytes),
    }
    return { ok: true, result, truncated: shown?.truncated ?? false }
  })
}

/** The most names of a directory that are listed, because sorting needs all names in memory. */
const maxNames = 20_000

/** Lists a directory: `{ entries: [{ name, type, size, mtime, mode, uid, owner }], total }`. */
export const fsList: DeviceCapability<z.infer<typeof fsListArgs>> = {
  capability: 'fs.list',
  args: fsListArgs,
  missingPrerequisite: missingProc,
  weigh: ({ path }, manifest) => weighRead(path, manifest),
  run: ({ path, limit }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, () =>
      withEntryAt(requirePlace(path, manifest, { state, hidden }, 'look'), async (held) => {
        assertDirectory(held)
        const { names, more } = await namesIn(held.handle, signal)
        names.sort(Buffer.compare)
        const users = await userNames()
        const entries = []
        for (const name of names.slice(0, limit)) {
          signal.throwIfAborted()
          const stat = await statOf(held.handle, name)
          if (stat) entries.push(entryOf(name, stat, users))
        }
        const truncated = more || names.length > limit
        const result = { path: held.path, entries, total: names.length, total_is_more: more }
        return { ok: true, result, truncated }
      }),
    ),
}

const entryOf = (name: Buffer, stat: BigIntStats, users: ReadonlyMap<string, string>) => ({
  name: name.toString('utf8'),
  type: kindOf(stat),
  size: Number(stat.size),
  mtime: stat.mtime.toISOString(),
  mode: modeOf(stat),
  uid: Number(stat.uid),
  owner: users.get(String(stat.uid)) ?? null,
})

/** Reads names as bytes. A name that is not UTF-8 is listed with U+FFFD in it. */
export async function namesIn(directory: FileHandle, signal: AbortSignal): Promise<{ names: Buffer[]; more: boolean }> {
  const names: Buffer[] = []
  // TypeScript declares names only as text; Node documents `buffer`.
  const listing = await opendir(`/proc/self/fd/${directory.fd}`, { encoding: 'buffer' as BufferEncoding })
  for await (const { name } of listing as AsyncIterable<Dirent<Buffer>>) {
    signal.throwIfAborted()
    if (names.length === maxNames) return { names, more: true }
    names.push(name)
  }
  return { names, more: false }
}

/** Describes a name in a directory. Null for a name that no longer exists. */
export async function statOf(directory: FileHandle, name: Buffer): Promise<BigIntStats | null> {
  try {
    return await lstat(Buffer.concat([Buffer.from(within(directory, '')), name]), { bigint: true })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Refusal of parts and base64, in which the rules do not recognise a secret. */
const wholeOnly = 'a secret file can be read only as a whole and as text'

/**
 * Reads a part of a file: `{ content, encoding, size, mtime, sha256, truncated }`. `sha256` is the
 * digest of the complete file, for a later `if_sha256`; null if the file is too large to be written
 * back. The manifest's output limit applies.
 */
export const fsRead: DeviceCapability<z.infer<typeof fsReadArgs>> = {
  capability: 'fs.read',
  args: fsReadArgs,
  missingPrerequisite: missingProc,
  weigh({ path, offset }, manifest) {
    const weight = weighRead(path, manifest)
    if (weight.effect !== 'write' || offset === 0) return weight
    return { ...weight, effect: 'refused', reason: wholeOnly }
  },
  run: ({ path, offset, max_bytes }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, () =>
      withEntryAt(requirePlace(path, manifest, { state, hidden }, 'look'), async (held) => {
        const file = await openContent(held)
        try {
          const { size, mtime } = await file.stat({ bigint: true })
          const limit = Math.min(max_bytes, manifest.limits.output_bytes)
          // Reads one byte more than requested, which shows whether the file goes on, even if the
          // file has no size.
          const bytes = await readPart(file, offset, limit + 1, signal)
          const more = bytes.length > limit
          const text = textOf(bytes.subarray(0, limit), more)
          if (isSecret(held.path) && (more || text.encoding !== 'utf8')) throw new CapabilityError('blocked', wholeOnly)
          const result = {
            path: held.path,
            content: text.content,
            encoding: text.encoding,
            offset,
            next_offset: more ? offset + text.bytes : null,
            size: Number(size),
            mtime: mtime.toISOString(),
            sha256: await digestOf(file, size, signal),
            truncated: more,
          }
          return { ok: true, result, truncated: more }
        } finally {
          await file.close()
        }
      }),
    ),
}

/**
 * Describes a file or directory without opening it: `{ type, size, mtime, mode, uid, owner, gid,
 * group, links, target }`, with names from the machine's user lists. Describes a symbolic link
 * itself and follows none.
 */
export const fsStat: DeviceCapability<z.infer<typeof fsStatArgs>> = {
  capability: 'fs.stat',
  args: fsStatArgs,
  missingPrerequisite: missingProc,
  weigh: ({ path }, manifest) => weighLook(path, manifest),
  run: ({ path }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, () =>
      withEntryAt(requirePlace(path, manifest, { state, hidden }, 'look'), async ({ stat, parent, name, path }) => {
        const result = {
          path,
          type: kindOf(stat),
          size: Number(stat.size),
          mtime: stat.mtime.toISOString(),
          mode: modeOf(stat),
          uid: Number(stat.uid),
          owner: (await userNames()).get(String(stat.uid)) ?? null,
          gid: Number(stat.gid),
          group: (await groupNames()).get(String(stat.gid)) ?? null,
          links: Number(stat.nlink),
          // Hides the target of a symbolic link at a secret path, because the target is content.
          target:
            stat.isSymbolicLink() && parent && !isSecret(path) ? await readlink(within(parent.handle, name)) : null,
        }
        return { ok: true, result, truncated: false }
      }),
    ),
}

/** The capabilities, in the order in which `/health` lists missing ones. */
export const fsCapabilities = [fsRead, fsWrite, fsList, fsStat]
