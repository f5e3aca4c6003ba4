import type { BigIntStats, Dirent } from 'node:fs'
import { type FileHandle, lstat, opendir } from 'node:fs/promises'
import { z } from 'zod'
import type { DeviceCapability } from '../capability.ts'
import { answered, errnoOf } from '../refused.ts'
import { pathArgument, placed, weighLook } from '../roots.ts'
import { assertDirectory, at, kindOf, modeOf, within } from '../walk.ts'
import { lacksProc } from './fs.ts'

const args = z.strictObject({ path: pathArgument, limit: z.number().int().min(1).max(1_000).default(200) })

/** A directory of more is listed in part: sorting needs all names in memory. */
const mostNames = 20_000

/** A directory, by name: `{ entries: [{ name, type, size, mtime, mode }], total }`. */
export const fsList: DeviceCapability<z.infer<typeof args>> = {
  capability: 'fs.list',
  args,
  lacks: lacksProc,
  weigh: ({ path }, manifest) => weighLook(path, manifest),
  run: ({ path, limit }, { manifest, state, hidden, signal }) =>
    answered(signal, () =>
      at(placed(path, manifest, { state, hidden }, 'look'), async (held) => {
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

/** Names as bytes: a name that is no UTF-8 is shown with U+FFFD and still told about. */
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
