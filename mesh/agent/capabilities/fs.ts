import type { BigIntStats, Dirent } from 'node:fs'
import { type FileHandle, lstat, opendir, readlink } from 'node:fs/promises'
import type { z } from 'zod'
import { fsListArgs, fsReadArgs, fsStatArgs } from '../../specs/fs.ts'
import type { DeviceCapability } from '../capability.ts'
import { digestOf, readPart, textOf } from '../content.ts'
import { CapabilityError, errnoOf, toOutcome } from '../operation.ts'
import { isSecret, missingProc, requirePlace, weighRead } from '../roots.ts'
import { assertDirectory, at, kindOf, modeOf, openContent, within } from '../walk.ts'
import { fsWrite } from './fs-write.ts'

/** A directory of more is listed in part: sorting needs all names in memory. */
const mostNames = 20_000

/** A directory, by name: `{ entries: [{ name, type, size, mtime, mode }], total }`. */
export const fsList: DeviceCapability<z.infer<typeof fsListArgs>> = {
  capability: 'fs.list',
  args: fsListArgs,
  missingPrerequisite: missingProc,
  weigh: ({ path }, manifest) => weighRead(path, manifest),
  run: ({ path, limit }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, () =>
      at(requirePlace(path, manifest, { state, hidden }, 'look'), async (held) => {
        assertDirectory(held)
        const { names, more } = await namesIn(held.handle, signal)
        names.sort(Buffer.compare)
        const entries = []
        for (const name of names.slice(0, limit)) {
          signal.throwIfAborted()
          const stat = await statOf(held.handle, name)
          if (stat) entries.push(entryOf(name, stat))
        }
        const truncated = more || names.length > limit
        const result = { path: held.path, entries, total: names.length, total_is_more: more }
        return { ok: true, result, truncated }
      }),
    ),
}

const entryOf = (name: Buffer, stat: BigIntStats) => ({
  name: name.toString('utf8'),
  type: kindOf(stat),
  size: Number(stat.size),
  mtime: stat.mtime.toISOString(),
  mode: modeOf(stat),
})

/** Names as bytes: a name that is not UTF-8 is listed, with U+FFFD in it. */
async function namesIn(directory: FileHandle, signal: AbortSignal): Promise<{ names: Buffer[]; more: boolean }> {
  const names: Buffer[] = []
  // TypeScript's types know names as text only; `buffer` is documented.
  const listing = await opendir(`/proc/self/fd/${directory.fd}`, { encoding: 'buffer' as BufferEncoding })
  for await (const { name } of listing as AsyncIterable<Dirent<Buffer>>) {
    signal.throwIfAborted()
    if (names.length === mostNames) return { names, more: true }
    names.push(name)
  }
  return { names, more: false }
}

/** Null for what has gone since its name was read. */
async function statOf(directory: FileHandle, name: Buffer): Promise<BigIntStats | null> {
  try {
    return await lstat(Buffer.concat([Buffer.from(within(directory, '')), name]), { bigint: true })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * In a part of a key, or in base64, the rules do not recognise the secret that a model must not
 * read.
 */
const wholeOnly = 'what is held for secret is read whole and as text, or not at all'

/**
 * Part of a file: `{ content, encoding, size, mtime, sha256, truncated }`. `sha256` is of the whole
 * file, for a later `if_sha256`; null for one that is too large to be written back. Not more at
 * once than the manifest's output limit.
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
      at(requirePlace(path, manifest, { state, hidden }, 'look'), async (held) => {
        const file = await openContent(held)
        try {
          const { size, mtime } = await file.stat({ bigint: true })
          const limit = Math.min(max_bytes, manifest.limits.output_bytes)
          // One byte more than asked for tells whether there is more, also of files that give no
          // size.
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
 * What something is, without opening it: `{ type, size, mtime, mode, uid, gid, links, target }`. A
 * link is described, not followed.
 */
export const fsStat: DeviceCapability<z.infer<typeof fsStatArgs>> = {
  capability: 'fs.stat',
  args: fsStatArgs,
  missingPrerequisite: missingProc,
  weigh: ({ path }, manifest) => weighRead(path, manifest),
  run: ({ path }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, () =>
      at(requirePlace(path, manifest, { state, hidden }, 'look'), async ({ stat, parent, name, path }) => {
        const result = {
          path,
          type: kindOf(stat),
          size: Number(stat.size),
          mtime: stat.mtime.toISOString(),
          mode: modeOf(stat),
          uid: Number(stat.uid),
          gid: Number(stat.gid),
          links: Number(stat.nlink),
          target: stat.isSymbolicLink() && parent ? await readlink(within(parent.handle, name)) : null,
        }
        return { ok: true, result, truncated: false }
      }),
    ),
}

/** In the order in which `/health` names what is missing. */
export const fsCapabilities = [fsRead, fsWrite, fsList, fsStat]
