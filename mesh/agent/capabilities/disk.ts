import type { z } from 'zod'
import { diskUsageArgs } from '../../specs/disk.ts'
import type { DeviceCapability } from '../capability.ts'
import { findDeletedFiles } from '../deleted-files.ts'
import { readFileSystems } from '../file-systems.ts'
import { findLargest } from '../largest.ts'
import { toOutcome } from '../outcome.ts'
import { ownPaths, requirePlace, weighRead } from '../roots.ts'
import { at } from '../walk.ts'
import { missingProcesses } from './proc.ts'

/**
 * What fills the disks: `{ file_systems, not_asked, deleted_but_open, below }`. `below` is null without a path. A path is reached by the rules
 * of `fs.list`.
 */
export const diskUsage: DeviceCapability<z.infer<typeof diskUsageArgs>> = {
  capability: 'disk.usage',
  args: diskUsageArgs,
  missingPrerequisite: missingProcesses,
  weigh: ({ path }, manifest) =>
    path === undefined ? { effect: 'read', reason: 'only looks', command: null } : weighRead(path, manifest),
  run: ({ path }, { manifest, state, hidden, signal }) =>
    toOutcome(signal, async () => {
      const isOwn = ownPaths({ state, hidden })
      // First: a path that is refused costs nothing else.
      const below =
        path === undefined
          ? null
          : await at(requirePlace(path, manifest, { state, hidden }, 'look'), (held) =>
              findLargest(held, { signal, isOwn }),
            )
      const deleted = await findDeletedFiles(signal, isOwn)
      const result = { ...(await readFileSystems(signal)), deleted_but_open: deleted, below }
      return { ok: true, result, truncated: deleted.partial || (below !== null && below.partial !== null) }
    }),
}

export const diskCapabilities = [diskUsage]
