import { z } from 'zod'
import type { DeviceCapability } from '../capability.ts'
import { digestOf, readPart, textOf } from '../content.ts'
import { answered, Refused } from '../refused.ts'
import { isSecret, pathArgument, placed, weighLook } from '../roots.ts'
import { at, openContent } from '../walk.ts'
import { lacksProc } from './fs.ts'

const args = z.strictObject({
  path: pathArgument,
  offset: z.number().int().min(0).default(0),
  max_bytes: z.number().int().min(1).max(10_000_000).default(64_000),
})

/** In a part of a key, or in base64, nobody recognises what must be left out before a model reads it. */
const wholeOnly = 'what is held for secret is read whole and as text, or not at all'

/**
 * Part of a file: `{ content, encoding, size, mtime, sha256, truncated }`. `sha256` is of the whole file, for a later `if_sha256`;
 * null for one that is too large to be written back. Not more at once than the manifest's output limit.
 */
export const fsRead: DeviceCapability<z.infer<typeof args>> = {
  capability: 'fs.read',
  args,
  lacks: lacksProc,
  weigh({ path, offset }, manifest) {
    const weight = weighLook(path, manifest)
    if (weight.effect !== 'write' || offset === 0) return weight
    return { ...weight, effect: 'refused', reason: wholeOnly }
  },
  run: ({ path, offset, max_bytes }, { manifest, state, hidden, signal }) =>
    answered(signal, () =>
      at(placed(path, manifest, { state, hidden }, 'look'), async (held) => {
        const file = await openContent(held)
        try {
          const { size, mtime } = await file.stat({ bigint: true })
          const limit = Math.min(max_bytes, manifest.limits.output_bytes)
          // One byte more than asked for tells whether there is more, also of files that give no size.
          const bytes = await readPart(file, offset, limit + 1, signal)
          const more = bytes.length > limit
          const text = textOf(bytes.subarray(0, limit), more)
          if (isSecret(held.path) && (more || text.encoding !== 'utf8')) throw new Refused('blocked', wholeOnly)
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
