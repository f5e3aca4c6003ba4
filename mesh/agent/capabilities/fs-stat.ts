import { readlink } from 'node:fs/promises'
import { z } from 'zod'
import type { DeviceCapability } from '../capability.ts'
import { answered } from '../refused.ts'
import { pathArgument, placed, weighLook } from '../roots.ts'
import { at, kindOf, modeOf, within } from '../walk.ts'
import { lacksProc } from './fs.ts'

const args = z.strictObject({ path: pathArgument })

/** What something is, without opening it: `{ type, size, mtime, mode, uid, gid, links, target }`. A link is told, not followed. */
export const fsStat: DeviceCapability<z.infer<typeof args>> = {
  capability: 'fs.stat',
  args,
  lacks: lacksProc,
  weigh: ({ path }, manifest) => weighLook(path, manifest),
  run: ({ path }, { manifest, state, hidden, signal }) =>
    answered(signal, () =>
      at(placed(path, manifest, { state, hidden }, 'look'), async ({ stat, parent, name, path }) => {
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
